// A connection with network filters before the terminal one. The filters and the terminal filter may pause the client, and either
// may end it.

import { DownstreamConnection } from '../downstream-connection.js';

/** The filters of a connection as the connection uses them. */
export interface ConnectionFilters {
  /** See DownstreamConnection. */
  readonly withheldBytes: number;
  readonly details: string;
  /** Called when the terminal filter resumes reading. */
  onTerminalResumed(): void;
  /** Called when the connection has ended. */
  destroy(): void;
}

export class FilteredConnection extends DownstreamConnection {
  /** Undefined until the filters are created, and if there are none for this connection. */
  run: ConnectionFilters | undefined;
  /** The terminal filter has paused reading; `#isFull`: the filters hold as many bytes as allowed. */
  #isPaused = false;
  #isFull = false;

  override get withheldBytes(): number {
    return this.run?.withheldBytes ?? 0;
  }

  override get terminationDetails(): string {
    return this.run?.details ?? '';
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  override pause(): void {
    this.#isPaused = true;
    if (!this.#isFull) super.pause();
  }

  override resume(): void {
    this.#isPaused = false;
    if (!this.#isFull) super.resume();
    this.run?.onTerminalResumed();
  }

  /** Stops reading the client until setFull(false), independently of the terminal filter. */
  setFull(isFull: boolean): void {
    if (isFull === this.#isFull) return;
    this.#isFull = isFull;
    if (this.#isPaused) return;
    if (isFull) super.pause();
    else super.resume();
  }

  protected override gone(): void {
    super.gone();
    this.run?.destroy();
  }
}
