// Whether health checks are to fail, and why: one word that all threads see at once, cheap enough to be read for every
// response.

/** Why they fail: bits, for each comes and goes alone. */
export const enum HealthFailure {
  /** POST /healthcheck/fail, or the file drain in flags_path at the start; until /healthcheck/ok. */
  OnPurpose = 1,
  /** The server drains before it ends. */
  Ending = 2,
}

export class ServerHealth {
  /** For other threads: crosses postMessage() as it is. */
  readonly buffer: SharedArrayBuffer;
  readonly #word: Int32Array;

  /** @param buffer the one of the thread that made it; a new one, which says that all is well, without it */
  constructor(buffer: SharedArrayBuffer = new SharedArrayBuffer(4)) {
    this.buffer = buffer;
    this.#word = new Int32Array(buffer);
  }

  /** For whatever reason. */
  get isFailing(): boolean {
    return Atomics.load(this.#word, 0) !== 0;
  }

  /** Somebody wants clients to leave: their connections end with the next response. */
  get isFailedOnPurpose(): boolean {
    return (Atomics.load(this.#word, 0) & HealthFailure.OnPurpose) !== 0;
  }

  /** Only the primary changes it. */
  set(failure: HealthFailure, isFailing: boolean): void {
    if (isFailing) Atomics.or(this.#word, 0, failure);
    else Atomics.and(this.#word, 0, ~failure);
  }
}
