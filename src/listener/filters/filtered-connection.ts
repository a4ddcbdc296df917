// A connection with network filters in front of the terminal one: both may pause the client, and either may end it.

import { DownstreamConnection } from '../downstream-connection.js';

/** The filters of a connection, as it sees them. */
export interface ConnectionFilters {
  /** See DownstreamConnection. */
  readonly withheldBytes: number;
  readonly details: string;
  /** The terminal filter takes what the client sends again. */
  onTerminalResumed(): void;
  /** The connection is gone. */
  destroy(): void;
}

export class FilteredConnection extends DownstreamConnection {
  /** Undefined until its filters are made, and when none of them has to do with it. */
  run: ConnectionFilters | undefined;
  /** The terminal filter wants nothing of the client for now; and the filters in front hold as much as they may. */
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

  /** The client is not read until setFull(false), whatever the terminal filter does. */
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
