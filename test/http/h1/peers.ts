// The two codecs with an owner and a stream that record events and do what a test requests.

import { headerKey } from '../../../src/common/text/header-names.js';
import type { ClientCodecEvents, ServerCodecEvents } from '../../../src/http/codec/connections.js';
import { DEFAULT_HTTP1_OPTIONS, type Http1Options } from '../../../src/http/codec/options.js';
import type {
  CodecError,
  RequestDecoder,
  RequestEncoder,
  ResetReason,
  ResponseDecoder,
  ResponseEncoder,
} from '../../../src/http/codec/streams.js';
import { H1ClientCodec } from '../../../src/http/h1/client-codec.js';
import { H1ServerCodec } from '../../../src/http/h1/server-codec.js';
import { removeHopByHop } from '../../../src/http/headers/edge/hop-by-hop.js';
import { HeaderBlock, type Method } from '../../../src/http/headers/header-block.js';
import { Wire } from './wire.js';

/** The parts of a message: status, or method and path, then fields. */
export interface Message {
  start: string;
  fields: [string, string][];
}

/** Events as text: consecutive data is one entry, so that splits do not show. */
class Journal {
  readonly wire: Wire;
  entries: string[] = [];

  constructor(wire: Wire) {
    this.wire = wire;
  }

  note(entry: string): void {
    this.entries.push(entry);
  }

  data(offset: number, length: number, endStream: boolean): void {
    const text = this.wire.memory.text(offset, offset + length);
    if (length > 0) {
      const last = this.entries.at(-1);
      if (last?.startsWith('data ')) this.entries[this.entries.length - 1] = last + text;
      else this.note(`data ${text}`);
    }
    if (endStream) this.note('end');
  }

  take(): string[] {
    const { entries } = this;
    this.entries = [];
    return entries;
  }
}

export function describe(headers: HeaderBlock): string {
  const parts = [];
  if (headers.status > 0) parts.push(String(headers.status));
  else if (headers.methodEnd > headers.methodStart) parts.push(headers.methodText(), headers.pathText());
  for (let i = 0; i < headers.size; i++) {
    if (!headers.isRemoved(i)) parts.push(`${headers.name(i)}=${headers.value(i)}`);
  }
  return parts.join(' ');
}

function block(wire: Wire, { start, fields }: Message): HeaderBlock {
  const headers = new HeaderBlock(wire.memory);
  const [first = '', path] = start.split(' ');
  if (/^\d+$/.test(first)) headers.status = Number(first);
  else if (path !== undefined) {
    const known = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH'].indexOf(first);
    headers.setMethod((known + 1) as Method, first);
    headers.setPath(path);
  }
  for (const [name, value] of fields) {
    headers.add(headerKey(name), value);
    if (name === 'connection' && value === 'close') headers.close = true;
    if (name === 'upgrade') headers.upgrade = true;
  }
  return headers;
}

export class ServerPeer implements ServerCodecEvents, RequestDecoder {
  readonly wire: Wire;
  codec: H1ServerCodec;
  /** Codecs take turns as in a server: one at rest gives the connection to another that has served before. */
  #spare: H1ServerCodec;
  readonly journal: Journal;
  /** Called when a request is complete. */
  onRequest: ((peer: ServerPeer) => void) | undefined;
  onNoRoom: ServerCodecEvents['onNoRoom'];
  encoder: ResponseEncoder | undefined;

  constructor(options: Partial<Http1Options> = {}, wire = new Wire()) {
    this.wire = wire;
    this.journal = new Journal(wire);
    this.codec = new H1ServerCodec(wire.memory, { ...DEFAULT_HTTP1_OPTIONS, ...options });
    this.codec.serve(wire, this);
    this.#spare = new H1ServerCodec(wire.memory, { ...DEFAULT_HTTP1_OPTIONS, ...options });
  }

  receive(text: string): void {
    this.wire.turn(text, (offset, length) => this.codec.receive(offset, length));
    this.#runTurns();
    this.#rest();
  }
  /** Runs a turn in which something else happens. */
  turn(act: () => void): void {
    this.wire.turn('', act);
    this.#runTurns();
    this.#rest();
  }
  /** Runs the turns that it has requested. */
  #runTurns(): void {
    while (this.wire.takeWait()) this.wire.turn('', () => this.codec.takeTurn());
  }
  #rest(): void {
    const { codec } = this;
    if (!codec.isAtRest) return;
    this.codec = this.#spare;
    this.codec.serve(this.wire, this);
    this.#spare = codec;
  }

  answer(message: Message, body: string | undefined): void {
    const headers = block(this.wire, message);
    this.#head(headers, body === undefined);
    headers.drop();
    if (body !== undefined) this.body(body, true);
  }
  /** Sends a header section whose body follows. */
  begin(message: Message): void {
    const headers = block(this.wire, message);
    this.#head(headers, false);
    headers.drop();
  }
  #head(headers: HeaderBlock, endStream: boolean): void {
    if (headers.close) this.codec.endConnection();
    this.codec.headers(headers, endStream);
  }
  informational(message: Message): void {
    const headers = block(this.wire, message);
    this.codec.informational(headers);
  }
  body(text: string, endStream: boolean): void {
    const offset = new HeaderBlock(this.wire.memory).writeText(text);
    this.codec.data(offset, text.length, endStream);
  }
  trailers(fields: [string, string][]): void {
    this.codec.trailers(block(this.wire, { start: '', fields }));
  }

  newStream(encoder: ResponseEncoder): RequestDecoder {
    this.encoder = encoder;
    return this;
  }
  onHeaders(headers: HeaderBlock, endStream: boolean): void {
    const flags = [headers.upgrade && 'upgrade', headers.expectContinue && 'expect', headers.close && 'close'];
    this.journal.note(`headers ${[describe(headers), ...flags.filter(Boolean)].join(' ')}`);
    if (endStream) {
      this.journal.note('end');
      this.onRequest?.(this);
    }
  }
  onData(offset: number, length: number, endStream: boolean): void {
    this.journal.data(offset, length, endStream);
    if (endStream) this.onRequest?.(this);
  }
  onTrailers(trailers: HeaderBlock): void {
    this.journal.note(`trailers ${describe(trailers)}`);
    this.onRequest?.(this);
  }
  onReset(reason: ResetReason, error: CodecError | undefined): void {
    this.journal.note(`reset ${reasonName(reason)}${error ? ` ${error.status} ${error.detail}` : ''}`);
  }
  onWriteBlocked(): void {
    this.journal.note('blocked');
  }
  onWriteDrained(): void {
    this.journal.note('drained');
  }
  onInvalid(error: CodecError): void {
    this.journal.note(`invalid ${error.status} ${error.detail}`);
    const { status, body } = error;
    const length: [string, string] = ['content-length', `${body?.length ?? 0}`];
    this.answer({ start: `${status}`, fields: [length] }, body);
  }
  onIdle(): void {
    this.journal.note('idle');
  }
  onHalfClose(): void {
    this.journal.note('half-close');
  }
  onClose(abort: boolean): void {
    this.journal.note(abort ? 'abort' : 'close');
  }
}

export class ClientPeer implements ClientCodecEvents, ResponseDecoder {
  readonly wire: Wire;
  readonly codec: H1ClientCodec;
  readonly journal: Journal;
  encoder: RequestEncoder | undefined;

  constructor(options: Partial<Http1Options> = {}, wire = new Wire()) {
    this.wire = wire;
    this.journal = new Journal(wire);
    this.codec = new H1ClientCodec(wire.memory, wire, this, { ...DEFAULT_HTTP1_OPTIONS, ...options });
  }

  receive(text: string): void {
    this.wire.turn(text, (offset, length) => this.codec.receive(offset, length));
    this.#runTurns();
  }
  turn(act: () => void): void {
    this.wire.turn('', act);
    this.#runTurns();
  }
  /** Runs the turns that it has requested. */
  #runTurns(): void {
    while (this.wire.takeWait()) this.wire.turn('', () => this.codec.takeTurn());
  }

  /** Starts a request; without a body it is complete, unless it is an upgrade. */
  request(message: Message, body: string | undefined, isComplete: boolean): void {
    this.codec.newStream(this);
    const headers = block(this.wire, message);
    removeHopByHop(headers, headers.upgrade);
    this.codec.headers(headers, body === undefined && isComplete);
    headers.drop();
    if (body !== undefined) this.body(body, isComplete);
  }
  body(text: string, endStream: boolean): void {
    const offset = new HeaderBlock(this.wire.memory).writeText(text);
    this.codec.data(offset, text.length, endStream);
  }
  trailers(fields: [string, string][]): void {
    this.codec.trailers(block(this.wire, { start: '', fields }));
  }

  onInformational(headers: HeaderBlock): void {
    this.journal.note(`informational ${describe(headers)}`);
  }
  onHeaders(headers: HeaderBlock, endStream: boolean): void {
    this.journal.note(`headers ${describe(headers)}${headers.close ? ' close' : ''}`);
    if (endStream) this.journal.note('end');
  }
  onData(offset: number, length: number, endStream: boolean): void {
    this.journal.data(offset, length, endStream);
  }
  onTrailers(trailers: HeaderBlock): void {
    this.journal.note(`trailers ${describe(trailers)}`);
  }
  onReset(reason: ResetReason, error: CodecError | undefined): void {
    this.journal.note(`reset ${reasonName(reason)}${error ? ` ${error.status} ${error.detail}` : ''}`);
  }
  onWriteBlocked(): void {
    this.journal.note('blocked');
  }
  onWriteDrained(): void {
    this.journal.note('drained');
  }
  onStreamComplete(reusable: boolean): void {
    this.journal.note(reusable ? 'reusable' : 'used up');
  }
  onProtocolError(error: CodecError): void {
    this.journal.note(`protocol error ${error.detail}`);
  }
  onEnded(isCutOff: boolean): void {
    this.journal.note(isCutOff ? 'ended too early' : 'ended');
  }
  onHalfClose(): void {
    this.journal.note('half-close');
  }
}

function reasonName(reason: ResetReason): string {
  return ['', 'termination', 'protocol', 'local', 'remote'][reason]!;
}
