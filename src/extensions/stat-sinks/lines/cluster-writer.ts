// Writes lines to a host of a cluster over one TCP connection. It is kept between flushes; after it broke, the next flush
// reconnects.

import { type CallingThread, ClusterStream } from '../../sdk.js';
import type { Condition } from '../condition.js';
import type { LineWriter } from './line-sink.js';

/** Lines are sent in pieces of about this many characters. */
const PIECE = 16 * 1024;

export class ClusterWriter implements LineWriter {
  readonly #stream: ClusterStream;
  readonly #condition: Condition;
  #text = '';
  /** The connection broke: the rest of the flush is lost. */
  #isLost = false;

  constructor(calls: CallingThread, cluster: string, condition: Condition) {
    this.#condition = condition;
    this.#stream = new ClusterStream(calls, cluster, {
      onSent: () => condition.sent(),
      onLost: (reason, pieces) => this.#lose(reason, pieces),
    });
  }

  begin(): void {
    this.#condition.begin();
    this.#isLost = false;
    this.#stream.open();
  }

  line(text: string): void {
    if (this.#isLost) return;
    this.#text += `${text}\n`;
    if (this.#text.length >= PIECE) this.#put();
  }

  /** Always undefined: ClusterStream closes the connection when too much is queued. */
  room(): undefined {}

  end(): void {
    if (!this.#isLost) this.#put();
  }

  /** Closes the connection, after a short time for queued lines. */
  close(): Promise<void> {
    return this.#stream.close();
  }

  #put(): void {
    const piece = Buffer.from(this.#text);
    this.#text = '';
    this.#stream.write(piece);
  }

  #lose(reason: string, pieces: number): void {
    this.#isLost = true;
    this.#condition.fails(reason, pieces);
    this.#text = '';
  }
}
