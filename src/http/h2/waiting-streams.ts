// Streams that have queued bytes and an open window of their own, in the order of their turns.

import type { H2Stream } from './stream.js';

export class WaitingStreams {
  first: H2Stream | undefined;
  #last: H2Stream | undefined;

  /**
   * Adds a stream, unless it has nothing to send or its own window stops it. Such streams are left out: a client could open a thousand of
   * them, and each of its WINDOW_UPDATE frames would visit them all.
   */
  addIfReady(stream: H2Stream): void {
    const { queue } = stream;
    if (stream.isWaiting || queue === undefined || (stream.sendWindow <= 0 && !queue.isEmpty)) return;
    const last = this.#last;
    stream.isWaiting = true;
    stream.previousWaiting = last;
    stream.nextWaiting = undefined;
    if (last === undefined) this.first = stream;
    else last.nextWaiting = stream;
    this.#last = stream;
  }

  remove(stream: H2Stream): void {
    const { previousWaiting: previous, nextWaiting: next } = stream;
    if (previous === undefined) this.first = next;
    else previous.nextWaiting = next;
    if (next === undefined) this.#last = previous;
    else next.previousWaiting = previous;
    stream.isWaiting = false;
    stream.previousWaiting = stream.nextWaiting = undefined;
  }
}
