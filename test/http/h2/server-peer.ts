// A server codec with an owner and streams that record events and do what a test requests.

import { headerKey } from '../../../src/common/text/header-names.js';
import type { ExchangeEnd, ServerCodecEvents } from '../../../src/http/codec/connections.js';
import { DEFAULT_HTTP2_OPTIONS, type Http2Options } from '../../../src/http/codec/options.js';
import type { CodecError, RequestDecoder, ResetReason, ResponseEncoder } from '../../../src/http/codec/streams.js';
import { H2ServerCodec } from '../../../src/http/h2/server-codec.js';
import { H2ServerStream } from '../../../src/http/h2/server-stream.js';
import { HeaderBlock } from '../../../src/http/headers/header-block.js';
import { StepPool } from '../../../src/http/step-pool.js';
import { Http2Stats } from '../../../src/stats/layouts/http.js';
import { describe } from '../h1/peers.js';
import { Wire } from '../h1/wire.js';
import { FramePeer, PREFACE, settings } from './frames.js';

const RESET_NAMES = ['', 'ConnectionTermination', 'ProtocolError', 'LocalReset', 'RemoteReset', 'RefusedStream'];

/** A request and its stream, by number of its arrival. */
export class TestStream implements RequestDecoder {
  readonly encoder: ResponseEncoder;
  readonly #peer: ServerPeer;
  readonly #number: number;

  constructor(peer: ServerPeer, encoder: ResponseEncoder, number: number) {
    this.#peer = peer;
    this.encoder = encoder;
    this.#number = number;
  }

  #note(text: string): void {
    this.#peer.journal.push(`${this.#number} ${text}`);
  }

  onHeaders(headers: HeaderBlock, endStream: boolean): void {
    this.#note(`${describe(headers)}${headers.expectContinue ? ' (expects)' : ''}${endStream ? ' end' : ''}`);
    this.#peer.onRequest?.(this);
  }
  onData(offset: number, length: number, endStream: boolean): void {
    const text = this.#peer.wire.memory.text(offset, offset + length);
    const last = this.#peer.journal.at(-1);
    const begin = `${this.#number} data `;
    // Splits do not show.
    if (last?.startsWith(begin)) this.#peer.journal.pop();
    if (length > 0 || last?.startsWith(begin))
      this.#note(`data ${last?.startsWith(begin) ? last.slice(begin.length) : ''}${text}`);
    if (endStream) this.#note('end');
    this.#peer.onBody?.(this, endStream);
  }
  onTrailers(trailers: HeaderBlock): void {
    this.#note(`trailers ${describe(trailers)}`);
  }
  onInvalid(error: CodecError): void {
    this.#note(`invalid ${error.status} ${error.detail}`);
    this.respond([], undefined, error.status);
  }
  onReset(reason: ResetReason, error: CodecError | undefined): void {
    this.#note(`reset ${RESET_NAMES[reason]}${error === undefined ? '' : ` ${error.detail}`}`);
  }
  onWriteBlocked(): void {
    this.#note('blocked');
  }
  onWriteDrained(): void {
    this.#note('drained');
    this.#peer.onDrained?.(this);
  }

  respond(fields: readonly [string, string][] = [], body?: string, status = 200): void {
    this.begin(fields, status, body === undefined);
    if (body !== undefined) this.body(body, true);
  }
  begin(fields: readonly [string, string][] = [], status = 200, endStream = false): void {
    const headers = blockOf(this.#peer.wire, fields);
    headers.status = status;
    this.encoder.headers(headers, endStream);
    headers.drop();
  }
  body(text: string, endStream = false): void {
    const { memory } = this.#peer.wire;
    const offset = memory.scratch(text.length);
    memory.write(offset, text);
    this.encoder.data(offset, text.length, endStream);
  }
  trailers(fields: readonly [string, string][]): void {
    const trailers = blockOf(this.#peer.wire, fields);
    this.encoder.trailers(trailers);
    trailers.drop();
  }
}

function blockOf(wire: Wire, fields: readonly [string, string][]): HeaderBlock {
  const headers = new HeaderBlock(wire.memory);
  for (const [name, value] of fields) headers.add(headerKey(name), value);
  return headers;
}

export class ServerPeer implements ServerCodecEvents {
  readonly wire: Wire;
  readonly codec: H2ServerCodec;
  readonly frames = new FramePeer();
  readonly streams: TestStream[] = [];
  journal: string[] = [];
  onRequest: ((stream: TestStream) => void) | undefined;
  onBody: ((stream: TestStream, endStream: boolean) => void) | undefined;
  onDrained: ((stream: TestStream) => void) | undefined;
  isClosed = false;
  readonly #counts = new Map<number, number>();

  /** A codec that has exchanged settings with its client, unless `isFresh`. */
  constructor(options: Partial<Http2Options> = {}, isFresh = false) {
    this.wire = new Wire();
    const pool = new StepPool(this.wire.memory, () => new H2ServerStream());
    const count = (slot: number, by: number) => this.#counts.set(slot, (this.#counts.get(slot) ?? 0) + by);
    const stats = { increment: (slot: number) => count(slot, 1), decrement: (slot: number) => count(slot, -1) };
    this.codec = new H2ServerCodec(this.wire.memory, { ...DEFAULT_HTTP2_OPTIONS, ...options }, stats, pool);
    this.turn(() => this.codec.serve(this.wire, this));
    if (isFresh) return;
    this.receive(PREFACE, settings());
    this.sent();
  }

  receive(...parts: Buffer[]): void {
    this.wire.turn(Buffer.concat(parts).toString('latin1'), (offset, length) => {
      if (!this.isClosed) this.codec.receive(offset, length);
    });
    this.#runTurns();
  }
  turn(act: () => void): void {
    this.wire.turn('', act);
    this.#runTurns();
  }
  #runTurns(): void {
    while (this.wire.takeWait()) this.wire.turn('', () => this.codec.takeTurn());
  }

  /** Takes the frames that were sent. */
  sent(): string[] {
    return this.frames.read(Buffer.from(this.wire.take(), 'latin1'));
  }
  /** Takes the recorded events. */
  events(): string[] {
    const { journal } = this;
    this.journal = [];
    return journal;
  }
  count(name: keyof typeof Http2Stats.at): number {
    return this.#counts.get(Http2Stats.at[name]) ?? 0;
  }
  /** Returns what is still held after the connection has ended: nothing. */
  end(): number {
    this.turn(() => this.codec.destroy());
    return this.wire.memory.retainedBytes();
  }

  newStream(encoder: ResponseEncoder): RequestDecoder {
    const stream = new TestStream(this, encoder, this.streams.length + 1);
    this.streams.push(stream);
    return stream;
  }
  onIdle(): void {
    this.journal.push('idle');
  }
  onClose(abort: boolean, _exchange: ExchangeEnd): void {
    this.journal.push(abort ? 'abort' : 'close');
    this.isClosed = true;
  }
}
