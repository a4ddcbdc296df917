// Dispatches events about closes, whose IDs are already invalid, by their tokens.

/** Called when an orderly close was cut short. `isSent`: only the peer's FIN was missing. */
export type LateHandler = (isSent: boolean) => void;

/** Called when a close has finished. `isCut`: its timeout has dropped bytes. */
export type GoneHandler = (isCut: boolean) => void;

/** Events carry a token as a positive int32. */
const MAX_TOKEN = 2 ** 31 - 1;

export class CloseNotifications {
  /** Keyed by the token of Op.NotifyGone. */
  readonly #gone = new Map<number, GoneHandler>();
  #goneToken = 0;
  /** Keyed by the token of Op.NotifyLate. */
  readonly #late = new Map<number, LateHandler>();
  #lateToken = 0;

  /** Returns a token for one close. Calls `gone` once, when the close has finished. */
  addGone(gone: GoneHandler): number {
    this.#goneToken = (this.#goneToken % MAX_TOKEN) + 1;
    this.#gone.set(this.#goneToken, gone);
    return this.#goneToken;
  }

  notifyGone(token: number, isCut: boolean): void {
    const gone = this.#gone.get(token)!;
    this.#gone.delete(token);
    gone(isCut);
  }

  /** Returns a token for any number of closes. Calls `late` for each that is cut short. */
  addLateHandler(late: LateHandler): number {
    this.#late.set(++this.#lateToken, late);
    return this.#lateToken;
  }

  removeLateHandler(token: number): void {
    this.#late.delete(token);
  }

  notifyLate(token: number, isSent: boolean): void {
    this.#late.get(token)?.(isSent);
  }

  /** Drops all pending `gone` callbacks when the transport is destroyed. */
  clear(): void {
    this.#gone.clear();
  }
}
