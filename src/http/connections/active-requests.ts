// The requests of a connection that are active, linked by ServerStream.next. Most connections have none or one.

import type { ServerStream } from '../streams/server-stream.js';

export class ActiveRequests {
  /** The newest. */
  first: ServerStream | undefined;
  count = 0;

  add(stream: ServerStream): void {
    const { first } = this;
    stream.next = first;
    if (first !== undefined) first.previous = stream;
    this.first = stream;
    this.count++;
  }

  remove(stream: ServerStream): void {
    const { next, previous } = stream;
    if (next !== undefined) next.previous = previous;
    if (previous === undefined) this.first = next;
    else previous.next = next;
    stream.next = stream.previous = undefined;
    this.count--;
  }

  /** Calls `act` for each request; `act` may end it. */
  visit(act: (stream: ServerStream) => void): void {
    let stream = this.first;
    while (stream !== undefined) {
      const { next } = stream;
      act(stream);
      stream = next;
    }
  }
}
