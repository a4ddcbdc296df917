// A module's wait for a part of a body that has not arrived.

export class BodyWait {
  readonly arrived: Promise<void>;
  /** Created when the wait begins, so that its stack has the line of the module. */
  readonly #failure = new Error();
  #resolve = () => {};
  #reject = (_why: Error) => {};

  constructor() {
    this.arrived = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  end(): void {
    this.#resolve();
  }

  fail(why: string): void {
    this.#failure.message = why;
    this.#reject(this.#failure);
  }
}
