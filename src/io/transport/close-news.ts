// What the shim tells of closes whose ids are dead already, by the tokens that they were given.

/** Told of an ordered close that was cut short; `isSent`: only the peer's end was missing. */
export type LateHandler = (isSent: boolean) => void;

/** Events hold a token as a positive Int32. */
const MOST_TOKENS = 2 ** 31 - 1;

export class CloseNews {
  /** By the token of Op.TellGone. */
  readonly #gone = new Map<number, () => void>();
  #goneToken = 0;
  /** By the token of Op.TellLate. */
  readonly #late = new Map<number, LateHandler>();
  #lateToken = 0;

  /** The token for a close at whose end `gone` is to be told, once. */
  awaitGone(gone: () => void): number {
    this.#goneToken = (this.#goneToken % MOST_TOKENS) + 1;
    this.#gone.set(this.#goneToken, gone);
    return this.#goneToken;
  }

  tellGone(token: number): void {
    const gone = this.#gone.get(token)!;
    this.#gone.delete(token);
    gone();
  }

  /** The token for all the closes of which `late` is to be told. */
  listenToLate(late: LateHandler): number {
    this.#late.set(++this.#lateToken, late);
    return this.#lateToken;
  }

  forgetLate(token: number): void {
    this.#late.delete(token);
  }

  tellLate(token: number, isSent: boolean): void {
    this.#late.get(token)?.(isSent);
  }

  /** The transport is destroyed: whoever waits for a close is not told any more. */
  clear(): void {
    this.#gone.clear();
  }
}
