// Holds back answers to updates on the aggregated stream: a server may wait for them with what depends on what it has sent.

export class AnswerGate {
  #isOpen = true;
  #tell: (isOpen: boolean) => void = () => {};

  /** Tells the stream, now and whenever it changes. There is one at most. */
  follow(tell: (isOpen: boolean) => void): void {
    this.#tell = tell;
    tell(this.#isOpen);
  }

  /** Updates are answered at once, those that have waited too; or, from now on, when it opens. */
  set(isOpen: boolean): void {
    if (isOpen === this.#isOpen) return;
    this.#isOpen = isOpen;
    this.#tell(isOpen);
  }
}
