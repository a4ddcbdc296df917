// Nanoseconds of the HTTP/1.1 codecs for one exchange: request in and out, response in and out. No sockets.
//
//   npm run build && node dist/scripts/bench/components/codec.js

import { StreamBytes } from '../../../src/access-log/stream/stream-bytes.js';
import { headerKey } from '../../../src/common/text/header-names.js';
import type { ClientCodecEvents, ServerCodecEvents } from '../../../src/http/codec/connections.js';
import { DEFAULT_HTTP1_OPTIONS } from '../../../src/http/codec/options.js';
import type {
  ByteSink,
  RequestDecoder,
  RequestEncoder,
  ResponseDecoder,
  ResponseEncoder,
} from '../../../src/http/codec/streams.js';
import { H1ClientCodec } from '../../../src/http/h1/client-codec.js';
import { HeadKind } from '../../../src/http/h1/head/head-parser.js';
import { HeadReader } from '../../../src/http/h1/head/head-reader.js';
import { KnownFields } from '../../../src/http/h1/head/known-fields.js';
import { sendRequestHead } from '../../../src/http/h1/serializer.js';
import { H1ServerCodec } from '../../../src/http/h1/server-codec.js';
import { h1Shared } from '../../../src/http/h1/shared.js';
import { removeHopByHop } from '../../../src/http/headers/edge/hop-by-hop.js';
import { HeaderBlock } from '../../../src/http/headers/header-block.js';
import { Memory } from '../../../src/io/memory.js';

const CURL =
  'GET /api/v1/items?page=2 HTTP/1.1\r\nHost: localhost:8080\r\nUser-Agent: curl/8.5.0\r\nAccept: */*\r\n\r\n';
const BROWSER =
  'GET /static/app.css?v=81723 HTTP/1.1\r\nHost: www.example.com\r\nConnection: keep-alive\r\n' +
  'User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36\r\n' +
  'Accept: text/css,*/*;q=0.1\r\nSec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: style\r\n' +
  'Referer: https://www.example.com/dashboard\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n' +
  'Accept-Language: en-GB,en;q=0.9,de;q=0.8\r\nCookie: session=3f2a9c0d7be14c55a1f0; theme=dark; _ga=GA1.1.1234567890.1718000000\r\n' +
  'If-None-Match: "5f3c-61b2"\r\n\r\n';
const RESPONSE =
  'HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Type: text/plain\r\n' +
  'Content-Length: 13\r\nConnection: keep-alive\r\n\r\nHello, world\n';
const ADDED = headerKey('x-request-id');

class Sink implements ByteSink {
  readonly pendingBytes = 0;
  bytes = 0;
  sends = 0;
  send(_offset: number, length: number): void {
    this.bytes += length;
    this.sends++;
  }
  pause(): void {}
  resume(): void {}
  requestTurn(): void {}
}

/** The minimal proxy between two codecs. */
class Relay implements ServerCodecEvents, ClientCodecEvents, RequestDecoder, ResponseDecoder {
  client!: H1ClientCodec;
  #response!: ResponseEncoder;
  #request!: RequestEncoder;

  newStream(encoder: ResponseEncoder): RequestDecoder {
    this.#response = encoder;
    this.#request = this.client.newStream(this.upstream);
    return this;
  }
  readonly upstream: ResponseDecoder = {
    onInformational: () => {},
    onHeaders: (headers, endStream) => {
      removeHopByHop(headers, false);
      this.#response.headers(headers, endStream);
    },
    onData: (offset, length, endStream) => this.#response.data(offset, length, endStream),
    onTrailers: () => {},
    onReset: () => {},
    onWriteBlocked: () => {},
    onWriteDrained: () => {},
  };
  onHeaders(headers: HeaderBlock, endStream: boolean): void {
    removeHopByHop(headers, false);
    headers.add(ADDED, '0a1b2c3d-0a1b-4c3d-8a1b-0a1b2c3d4e5f');
    this.#request.headers(headers, endStream);
  }
  onData(offset: number, length: number, endStream: boolean): void {
    this.#request.data(offset, length, endStream);
  }
  onInformational(): void {}
  onTrailers(): void {}
  onReset(): undefined {}
  onWriteBlocked(): void {}
  onWriteDrained(): void {}
  onInvalid(): void {
    throw new Error('invalid');
  }
  onIdle(): void {}
  onClose(): void {
    throw new Error('closed');
  }
  onStreamComplete(): void {}
  onEnded(): void {}
  onProtocolError(): void {
    throw new Error('protocol error');
  }
}

/** Takes the best of many short rounds, which excludes the effect of other processes. */
const ROUNDS = 400;
const RUNS_A_ROUND = 2000;
const memory = new Memory();

function write(at: number, text: string): number {
  for (let i = 0; i < text.length; i++) memory.bytes[at + i] = text.charCodeAt(i);
  return text.length;
}

function measure(name: string, run: () => void): void {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS; round++) {
    const start = process.hrtime.bigint();
    for (let i = 0; i < RUNS_A_ROUND; i++) run();
    best = Math.min(best, Number(process.hrtime.bigint() - start) / RUNS_A_ROUND);
  }
  console.log(`${name.padEnd(44)} ${best.toFixed(0).padStart(6)} ns`);
}

for (const [name, text] of [
  ['curl-like', CURL],
  ['browser-like', BROWSER],
] as const) {
  const sink = new Sink();
  const bytes = new StreamBytes();
  const relay = new Relay();
  const server = new H1ServerCodec(memory);
  server.serve(sink, relay);
  relay.client = new H1ClientCodec(memory, sink, relay);
  const requestLength = write(0, text);
  const responseLength = write(1000, RESPONSE);

  const reader = new HeadReader(memory, new KnownFields(memory));
  const head = new HeaderBlock(memory);
  measure(`${name}: parse request head`, () => {
    head.clear();
    reader.read(HeadKind.Request, head, 0, requestLength, DEFAULT_HTTP1_OPTIONS);
  });
  const shared = h1Shared(memory);
  measure(`${name}: parse and serialise request head`, () => {
    head.clear();
    reader.read(HeadKind.Request, head, 0, requestLength, DEFAULT_HTTP1_OPTIONS);
    sendRequestHead(sink, shared, head, 0, 0, bytes);
  });
  measure(`${name}: whole exchange through both codecs`, () => {
    server.receive(0, requestLength);
    memory.endTurn();
    relay.client.receive(1000, responseLength);
    memory.endTurn();
  });
  sink.sends = 0;
  server.receive(0, requestLength);
  memory.endTurn();
  relay.client.receive(1000, responseLength);
  console.log(`${''.padEnd(44)} ${String(sink.sends).padStart(6)} sends`);
  memory.endTurn();
}
