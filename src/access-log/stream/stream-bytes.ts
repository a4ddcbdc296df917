// Bytes of one stream as they are on the wire. Codecs count them.

export class StreamBytes {
  /** All bytes: heads, bodies with their framing, trailers. */
  received = 0;
  sent = 0;
  /** Names and values of fields with their separators, without start lines. */
  headersReceived = 0;
  headersSent = 0;

  reset(): void {
    this.received = 0;
    this.sent = 0;
    this.headersReceived = 0;
    this.headersSent = 0;
  }

  add(other: StreamBytes): void {
    this.received += other.received;
    this.sent += other.sent;
    this.headersReceived += other.headersReceived;
    this.headersSent += other.headersSent;
  }
}
