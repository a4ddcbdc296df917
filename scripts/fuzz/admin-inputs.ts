// Inputs of hostile clients of the admin port: HTTP/1.1 requests, HTTP/2 frames, and mutations of both.

import { HANDLERS } from '../../src/admin/handlers/index.js';
import type { Random } from '../../src/common/random.js';
import {
  FrameFlag,
  FrameType,
  fields,
  frame,
  opening,
  request,
  reset,
  uint32,
} from '../../test/e2e/harness/http2-frames.js';
import { mutateBytes, pick } from './mutation.js';

/** One connection. */
export interface AdminInput {
  /** Each piece is written in its own turn of the loop, so that most are sent as separate segments. */
  readonly pieces: readonly Buffer[];
  /** The client's action after the last piece. */
  readonly leaving: 'end' | 'reset' | 'close';
  /** Whether the client reads responses. */
  readonly reads: boolean;
}

/** All endpoints except the one that ends the process. */
const ENDPOINTS = HANDLERS.filter(({ path }) => path !== '/quitquitquit');
/** They take a second of CPU, so they are requested rarely. */
const COSTLY = ['/config/reload', '/heap_dump', '/peak_heap_dump', '/cpuprofiler', '/heapprofiler', '/allocprofiler'];

const METHODS = [
  'GET',
  'POST',
  'HEAD',
  'PUT',
  'DELETE',
  'OPTIONS',
  'TRACE',
  'CONNECT',
  'PATCH',
  'get',
  'PRI',
  'M-SEARCH',
  'X',
];
const VERSIONS = ['HTTP/1.1', 'HTTP/1.0', 'HTTP/2.0', 'HTTP/0.9', 'HTTP/1.9'];
const VALUES = [
  '',
  '1',
  '-1',
  '0',
  '1e999',
  'y',
  'n',
  'json',
  'prometheus',
  'html',
  'text',
  'debug',
  'admin:trace',
  'server',
  '.*',
  '^$',
  `${'('.repeat(300)}x${')'.repeat(300)}`,
  '(a{1,1000}){1,1000}',
  '.*'.repeat(400),
  '[',
  '(?P<a>x)',
  '%',
  '%00',
  '%ff%fe',
  '%f0%9f%98%80',
  '%0d%0aSet-Cookie:%20a=b',
  '../../../etc/passwd',
  'x'.repeat(3000),
  'a,b,c.d,e.*',
  'static_resources.clusters',
  'dynamic_active_clusters',
];
const TARGETS = [
  '*',
  '//',
  '/../ready',
  '/ready/',
  '/ready?',
  '/ready#x',
  '/%72eady',
  '/stats/',
  '/none',
  '/\xff',
  'http://[::1/ready',
  'http://a:b@c/ready',
  'localhost:443',
  '?',
  '/?',
  '/<script>',
  '/__proto__',
  '/constructor',
];
const HEADERS = [
  'expect: 100-continue',
  'expect: miracles',
  'connection: close',
  'connection: keep-alive, x',
  'connection: upgrade\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__',
  'connection: upgrade\r\nupgrade: websocket',
  'origin: http://evil.example',
  'origin: null',
  'sec-fetch-site: cross-site',
  'accept-encoding: gzip, br, zstd;q=0, *;q=-1',
  'accept: text/html, */*;q=0',
  'if-none-match: "a", W/"b", *',
  'if-modified-since: never',
  'range: bytes=0-1, 5-, -9',
  'content-type: application/x-www-form-urlencoded',
  'content-type: multipart/form-data; boundary=x',
  'content-encoding: gzip',
  'transfer-encoding: chunked',
  'transfer-encoding: gzip, chunked',
  'content-length: 5',
  'content-length: 5\r\ncontent-length: 6',
  'content-length: 99999999999999999999',
  'content-length: 2000000',
  'te: trailers',
  'trailer: x',
  'host: a',
  'x-forwarded-for: ::1',
  `x-long: ${'y'.repeat(70_000)}`,
  'x: y\r\n'.repeat(200).trimEnd(),
  ' folded: x',
  'x : y',
  ': z',
];
const BODIES = [
  '',
  'level=info',
  '{"a":"b"}',
  'a=1&b=%zz&__proto__=2',
  '5\r\nlevel\r\n0\r\n\r\n',
  '5;x="y\r\nhello\r\n0\r\nx-trailer: 1\r\n\r\n',
  'fffffffffffffffff\r\n',
  'static_resources: [',
  '\x1f\x8b\x08\x00\x00',
  'x'.repeat(40_000),
];
const TOKENS = [
  '\r\n',
  '\n',
  '\0',
  ' ',
  '\r\n\r\n',
  '\xff',
  'HTTP/1.1',
  '?filter=(',
  '&format=json',
  ...HEADERS.slice(0, 20),
].map((text) => Buffer.from(text, 'latin1'));

/** A connection of a hostile client. */
export function adminInput(random: Random): AdminInput {
  const kind = random.below(10);
  let bytes = kind < 5 ? http1(random) : http2(random);
  if (random.below(3) === 0) bytes = mutateBytes(random, [bytes, http1(random), http2(random)], TOKENS);
  return {
    pieces: inPieces(random, bytes),
    leaving: pick(random, ['end', 'reset', 'close', 'close']),
    reads: random.below(5) > 0,
  };
}

/** Returns the text for a file with a finding: one input per line, its pieces in base64. */
export function inputLine({ pieces, leaving, reads }: AdminInput): string {
  return JSON.stringify({ leaving, reads, pieces: pieces.map((each) => each.toString('base64')) });
}

function inPieces(random: Random, bytes: Buffer): Buffer[] {
  const pieces: Buffer[] = [];
  const isSplit = random.below(2) === 0;
  // Only the beginning of a long input is split, because each piece takes a turn.
  for (let at = 0; at < bytes.length; ) {
    const to = isSplit && pieces.length < 20 ? Math.min(bytes.length, at + 1 + random.below(60)) : bytes.length;
    pieces.push(bytes.subarray(at, to));
    at = to;
  }
  return pieces;
}

/** Requests on one connection, the last of which may be truncated. */
function http1(random: Random): Buffer {
  const count = random.below(4) === 0 ? 2 + random.below(random.below(10) === 0 ? 150 : 8) : 1;
  const all = Buffer.concat(Array.from({ length: count }, () => http1Request(random)));
  return random.below(4) === 0 ? all.subarray(0, random.below(all.length + 1)) : all;
}

function http1Request(random: Random): Buffer {
  const method = random.below(2) === 0 ? 'GET' : pick(random, METHODS);
  const version = random.below(8) > 0 ? 'HTTP/1.1' : pick(random, VERSIONS);
  const headers = Array.from({ length: random.below(4) }, () => pick(random, HEADERS));
  if (random.below(10) > 0) headers.unshift('host: localhost');
  const body = random.below(3) > 0 ? '' : pick(random, BODIES);
  if (body !== '' && random.below(2) === 0) headers.push(`content-length: ${body.length}`);
  return Buffer.from(`${method} ${target(random)} ${version}\r\n${[...headers, '', body].join('\r\n')}`, 'latin1');
}

function target(random: Random): string {
  if (random.below(8) === 0) return pick(random, TARGETS);
  const endpoint = pick(random, ENDPOINTS);
  if (COSTLY.includes(endpoint.path) && random.below(20) > 0) return '/stats';
  const names = [...endpoint.parameters.map(({ name }) => name), 'filter', 'format', 'mask', 'resource', 'key'];
  const query = Array.from({ length: random.below(4) }, () => {
    const name = pick(random, names);
    const { choices = [] } = endpoint.parameters.find((each) => each.name === name) ?? {};
    return `${name}=${pick(random, random.below(2) === 0 && choices.length > 0 ? choices : VALUES)}`;
  });
  return query.length === 0 ? endpoint.path : `${endpoint.path}?${query.join('&')}`;
}

/** The connection preface, valid or nearly so, and frames. */
function http2(random: Random): Buffer {
  const parts = [opening()];
  const streams = [1, 3, 5, 7, 9, 11];
  for (let left = 1 + random.below(12); left > 0; left--) parts.push(frames(random, streams));
  return Buffer.concat(parts);
}

const { Data, Headers, Priority, RstStream, Settings, PushPromise, Ping, GoAway, WindowUpdate, Continuation } =
  FrameType;

function frames(random: Random, streams: readonly number[]): Buffer {
  const stream = random.below(10) === 0 ? pick(random, [0, 2, 4, 0x7fffffff, 0xffffffff]) : pick(random, streams);
  const flags = random.below(4) === 0 ? random.below(256) : pick(random, [0, 1, 4, 5]);
  switch (random.below(14)) {
    case 0:
    case 1:
      return request(stream, target(random), { ':method': pick(random, METHODS), ...someFields(random) });
    case 2:
      // In one segment, so that it is reset before it is handled.
      return Buffer.concat([
        frame(Headers, FrameFlag.EndHeaders | (flags & 1), stream, head(random)),
        frame(RstStream, 0, stream, uint32(random.below(14))),
      ]);
    case 3: {
      const block = head(random);
      const at = random.below(block.length);
      const interrupting = random.below(3) === 0 ? frame(Ping, flags, 0, Buffer.alloc(8)) : Buffer.alloc(0);
      return Buffer.concat([
        frame(Headers, flags & 1, stream, block.subarray(0, at)),
        interrupting,
        frame(Continuation, FrameFlag.EndHeaders, stream, block.subarray(at)),
      ]);
    }
    case 4:
      return frame(Data, flags, stream, Buffer.alloc(random.below(20_000), 'a=b&'));
    case 5:
      return frame(Settings, flags & 1, random.below(8) === 0 ? stream : 0, settings(random));
    case 6:
      return frame(Ping, flags, random.below(8) === 0 ? stream : 0, Buffer.alloc(random.below(8) === 0 ? 7 : 8));
    case 7:
      return frame(WindowUpdate, 0, pick(random, [0, stream]), uint32(pick(random, [0, 1, 65_535, 0x7fffffff, -1])));
    case 8:
      return frame(Priority, 0, stream, Buffer.concat([uint32(pick(random, [0, stream, 1])), Buffer.from([255])]));
    case 9:
      return frame(RstStream, 0, stream, uint32(random.below(14)));
    case 10:
      return frame(
        GoAway,
        0,
        0,
        Buffer.concat([uint32(random.below(20)), uint32(random.below(14)), Buffer.alloc(random.below(9))]),
      );
    case 11: {
      const code = random.below(14);
      const count = random.below(4) === 0 ? 300 : 20;
      return Buffer.concat(
        Array.from({ length: count }, (_, index) => {
          const next = 101 + 2 * index;
          return Buffer.concat([request(next, target(random)), reset(next, code)]);
        }),
      );
    }
    case 12: {
      const odd = frame(pick(random, [Headers, PushPromise, 10, 12, 255]), flags, stream, noise(random, 60));
      // A wrong length.
      if (random.below(2) === 0) odd.writeUIntBE(pick(random, [0, 1, 16_384, 16_385, 0xffffff]), 0, 3);
      return odd;
    }
    default:
      return noise(random, 40);
  }
}

function head(random: Random): Buffer {
  const all: Record<string, string> = {
    ':method': pick(random, METHODS),
    ':scheme': pick(random, ['http', 'https', '']),
    ':path': target(random),
    ...(random.below(3) === 0 ? {} : { ':authority': 'localhost' }),
    ...someFields(random),
  };
  if (random.below(10) === 0) delete all[pick(random, [':method', ':scheme', ':path'])];
  return fields(all);
}

function someFields(random: Random): Record<string, string> {
  const some: Record<string, string> = {};
  for (let left = random.below(4); left > 0; left--) {
    const [name = '', value = ''] = pick(random, HEADERS).split(': ');
    some[name.trim()] = value;
  }
  return random.below(10) === 0 ? { ...some, ':protocol': 'websocket' } : some;
}

function settings(random: Random): Buffer {
  const all = Array.from({ length: random.below(5) }, () => {
    const setting = Buffer.alloc(6);
    setting.writeUInt16BE(random.below(10), 0);
    setting.writeUInt32BE(pick(random, [0, 1, 100, 16_384, 65_535, 0x7fffffff, 0xffffffff]), 2);
    return setting;
  });
  return Buffer.concat(random.below(8) === 0 ? [...all, Buffer.alloc(5)] : all);
}

function noise(random: Random, most: number): Buffer {
  return Buffer.from(Array.from({ length: random.below(most) }, () => random.below(256)));
}
