// The state that makes health checks of this server fail: a word that all threads see at once, cheap enough to be read for every
// response.

/** Reasons for failing, as independent bits. */
export const enum HealthFailure {
  /** POST /healthcheck/fail, or the file drain in flags_path at the start; until /healthcheck/ok. */
  Requested = 1,
  /** The server drains before it ends. */
  Ending = 2,
}

export class ServerHealth {
  /** For other threads: can cross postMessage(). */
  readonly buffer: SharedArrayBuffer;
  readonly #word: Int32Array;

  /** @param buffer that of the thread that created it; absent: a new one, in which nothing fails */
  constructor(buffer: SharedArrayBuffer = new SharedArrayBuffer(4)) {
    this.buffer = buffer;
    this.#word = new Int32Array(buffer);
  }

  /** Any reason is set. */
  get isFailing(): boolean {
    return Atomics.load(this.#word, 0) !== 0;
  }

  /** Failure was requested by the operator: each connection is closed with its next response. */
  get isFailRequested(): boolean {
    return (Atomics.load(this.#word, 0) & HealthFailure.Requested) !== 0;
  }

  /** Sets or clears a reason. Called only by the primary. */
  set(failure: HealthFailure, isFailing: boolean): void {
    if (isFailing) Atomics.or(this.#word, 0, failure);
    else Atomics.and(this.#word, 0, ~failure);
  }
}
