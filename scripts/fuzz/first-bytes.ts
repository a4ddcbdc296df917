// Mutated first bytes of connections, as listener filters inspect them. The filters run in this process, without sockets.

import type { Random } from '../../src/common/random.js';
import type { WorkerContext } from '../../src/extensions/factories.js';
import { httpInspector } from '../../src/extensions/filters/listener/http-inspector/index.js';
import { proxyProtocol } from '../../src/extensions/filters/listener/proxy-protocol/index.js';
import { tlsInspector } from '../../src/extensions/filters/listener/tls-inspector/index.js';
import type { DetectedProtocols } from '../../src/io/tls/detected-protocols.js';
import { type ListenerFilter, Verdict } from '../../src/listener/listener-filter.js';
import {
  alpn,
  clientHello,
  helloMessage,
  integers,
  records,
  serverName,
  vector,
} from '../../test/extensions/filters/listener/tls-inspector/hello-bytes.js';
import { mutateBytes } from './mutation.js';
import { Finding, type Scope } from './scope.js';

/** Inputs between two looks at the clock. */
const INPUTS_PER_STEP = 500;
/** No input may take longer, even one of the largest size in many segments. */
const MAX_INPUT_MS = 2000;
const MAX_SHOWN_BYTES = 2000;

/** Throws a Finding when a filter throws, takes long, or decides otherwise when bytes arrive in segments. Returns a summary. */
export async function fuzzFirstBytes(_scope: Scope, random: Random, durationMs: number): Promise<string> {
  const filters: Record<string, ListenerFilter> = {
    tls: tlsInspector.createOnWorker(
      { enable_ja3_fingerprinting: true, enable_ja4_fingerprinting: true, max_client_hello_size: 4096 },
      context,
    ),
    http: httpInspector.createOnWorker({}, context),
    proxy: proxyProtocol.createOnWorker({ allow_requests_without_proxy_protocol: true }, context),
  };
  const hellos = await seeds();
  const end = performance.now() + durationMs;
  const results = new Map<string, number>();
  let inputs = 0;
  while (performance.now() < end) {
    for (let left = INPUTS_PER_STEP; left > 0; left--, inputs++) {
      const input = mutateBytes(random, hellos, TOKENS);
      for (const [name, filter] of Object.entries(filters)) {
        const key = `${name} ${check(filter, input, random)}`;
        results.set(key, (results.get(key) ?? 0) + 1);
      }
    }
    await new Promise(setImmediate);
  }
  const counts = [...results].sort().map(([key, count]) => `${key}: ${count}`);
  return `${inputs} inputs (${counts.join(', ')}); no defect`;
}

function check(filter: ListenerFilter, input: Buffer, random: Random): string {
  const begin = performance.now();
  try {
    const whole = input.length === 0 ? 'incomplete' : outcome(filter, input);
    const inSegments = afterSegments(filter, input, random);
    if (whole !== inSegments) throw new Error(`at once: ${whole}; in segments: ${inSegments}`);
    const ms = performance.now() - begin;
    if (ms > MAX_INPUT_MS) throw new Error(`it took ${Math.round(ms)} ms`);
    return whole.split(' ')[0]!;
  } catch (error) {
    throw new Finding(
      `${error instanceof Error ? error.stack : String(error)}\n\nThe first bytes of the input:\n${input.toString('hex', 0, MAX_SHOWN_BYTES)}`,
    );
  }
}

/** Returns the first decision when the bytes arrive in segments. */
function afterSegments(filter: ListenerFilter, input: Buffer, random: Random): string {
  const longest = random.below(3) === 0 ? 1 + (input.length >> 9) : 1 + (input.length >> 4);
  for (let end = 1; end < input.length; end += 1 + random.below(longest)) {
    const decision = outcome(filter, input.subarray(0, end));
    if (decision !== 'incomplete') return decision;
  }
  return input.length === 0 ? 'incomplete' : outcome(filter, input);
}

function outcome(filter: ListenerFilter, bytes: Buffer): string {
  let detected: DetectedProtocols | undefined;
  const connection = {
    remote: undefined as never,
    local: undefined as never,
    detected: undefined,
    originalDestination: () => undefined,
    detect: () => (detected ??= { transportProtocol: '', applicationProtocols: [], serverName: '', ja3: '', ja4: '' }),
  };
  const result = filter.inspect(bytes, connection);
  if (result === Verdict.NeedsMore) return bytes.length < filter.maxBytes ? 'incomplete' : 'refused';
  if (result === Verdict.Refuses) return 'refused';
  if (!(result >= 0 && result <= bytes.length)) throw new Error(`it consumes ${result} of ${bytes.length} bytes`);
  return `passed ${result} ${JSON.stringify(detected)} ${String(connection.remote)} ${String(connection.local)}`;
}

/** Stats are not read. */
const context = {
  scope: () => ({ increment: () => {}, record: () => {} }),
} as unknown as WorkerContext;

async function seeds(): Promise<Buffer[]> {
  const extensions = [
    serverName('www.example.com'),
    alpn('h2', 'http/1.1'),
    [10, vector(2, integers(0x3a3a, 29, 23))],
    [11, Buffer.of(1, 0)],
    [13, vector(2, integers(0x0403, 0x0804))],
    [43, vector(1, integers(0x4a4a, 0x0304))],
    [
      0xfe0d,
      Buffer.concat([Buffer.from([0, 0, 1, 0, 1, 7]), vector(2, Buffer.alloc(32)), vector(2, Buffer.alloc(99))]),
    ],
    [21, Buffer.alloc(300)],
  ] as const;
  return [
    await clientHello({ servername: 'a.example.com', ALPNProtocols: ['h2', 'http/1.1'] }),
    await clientHello({ maxVersion: 'TLSv1.2' }),
    records(helloMessage({ extensions })),
    records(helloMessage({ extensions }), 50),
    records(helloMessage({ extensions: undefined }), 1),
    Buffer.concat([records(Buffer.of(1, 90), 2, 21), records(helloMessage({ extensions }), 200)]),
    ...['GET / HTTP/1.1\r\nhost: a\r\n\r\n', 'GET http://a/ HTTP/1.0\r\n', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'].map(
      (text) => Buffer.from(text, 'latin1'),
    ),
    Buffer.from('PROXY TCP4 192.0.2.1 198.51.100.2 4000 443\r\n'),
    Buffer.from('0d0a0d0a000d0a515549540a2111000cc0000201c63364020fa001bb', 'hex'),
  ];
}

const TOKENS: readonly Buffer[] = [
  ...['\0', '\xff', '\x16\x03\x01', '\x16\x03\x01\x00\x01', '\x16\x03\x01\x00\x00', '\x15\x03\x01\x00\x02\x01\x5a'],
  ...[
    '\x00\x00\x00\x06\x00\x04\x00\x00\x01a',
    '\x00\x10\x00\x05\x00\x03\x02h2',
    '\xfe\x0d\x00\x00',
    '\n',
    ' HTTP/1.1\r\n',
  ],
].map((text) => Buffer.from(text, 'latin1'));
