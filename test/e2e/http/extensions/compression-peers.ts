// A host for tests of compression, and the filters around it.

import type { Test } from 'tap';
import type { ProxyProgram } from '../../harness/envoy.js';
import { type Config, ROUTER_FILTER, startUpstream, staticCluster, waitFor } from '../../harness/index.js';
import { type HttpProxy, managerOf, routeTo, startProxy } from '../proxy.js';

export const TYPES = 'type.googleapis.com/envoy.extensions.';

export interface ReceivedRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: Buffer;
}

/** The answer of the host to every request, until a test sets another. */
export interface Answer {
  status?: number;
  headers?: Record<string, string>;
  /** Without content-length if there are several. */
  parts?: (string | Buffer)[];
}

export const TEXT = 'hello world '.repeat(10);

export interface CompressionSetup {
  readonly proxy: HttpProxy;
  readonly requests: ReceivedRequest[];
  answer: Answer;
}

/** Starts a proxy with a listener for each chain of filters before the router. `routes`: before the route to the host. */
export async function startCompression(
  t: Test,
  program: ProxyProgram,
  chains: Record<string, Config[]>,
  routes: Config[] = [],
  args: string[] = [],
): Promise<CompressionSetup> {
  const requests: ReceivedRequest[] = [];
  const host = await startUpstream(t, (request, response) => {
    const received: Buffer[] = [];
    request.on('data', (part: Buffer) => received.push(part));
    request.on('end', () => {
      requests.push({ url: request.url!, headers: request.headers, body: Buffer.concat(received) });
      const { status = 200, headers = {}, parts = [TEXT] } = setup.answer;
      const length = parts.length === 1 ? { 'content-length': Buffer.byteLength(parts[0]!) } : {};
      response.writeHead(status, { 'content-type': 'text/plain', ...length, ...headers });
      for (const part of parts) response.write(part);
      response.end();
    });
  });
  const proxy = await startProxy(t, {
    ...program,
    ...(args.length > 0 && { args }),
    listeners: Object.fromEntries(
      Object.entries(chains).map(([name, filters]) => [
        name,
        managerOf([...routes, routeTo({ prefix: '/' }, 'host', { timeout: '60s' })], {
          stat_prefix: name,
          http_filters: [...filters, ROUTER_FILTER],
        }),
      ]),
    ),
    clusters: [staticCluster('host', host.port)],
  });
  const setup: CompressionSetup = { proxy, requests, answer: {} };
  return setup;
}

/** Returns a library: `kind` is gzip, brotli or zstd. */
export function library(kind: string, direction: 'compressor' | 'decompressor', config: Config = {}): Config {
  const message = kind.charAt(0).toUpperCase() + kind.slice(1);
  return {
    name: kind,
    typed_config: { '@type': `${TYPES}compression.${kind}.${direction}.v3.${message}`, ...config },
  };
}

export function compressor(kind: string, config: Config = {}, options: Config = {}): Config {
  const typed_config = {
    '@type': `${TYPES}filters.http.compressor.v3.Compressor`,
    compressor_library: library(kind, 'compressor', options),
    ...config,
  };
  return { name: `${kind}-compressor`, typed_config };
}

export function decompressor(kind: string, config: Config = {}, options: Config = {}): Config {
  const typed_config = {
    '@type': `${TYPES}filters.http.decompressor.v3.Decompressor`,
    decompressor_library: library(kind, 'decompressor', options),
    ...config,
  };
  return { name: `${kind}-decompressor`, typed_config };
}

/** Waits until a counter no longer grows. Returns its value. */
export async function stillStat({ baton }: HttpProxy, name: string): Promise<number> {
  let last = 0;
  let still = 0;
  await waitFor(
    async () => {
      const now = (await baton.stat(name)) ?? 0;
      still = now > 0 && now === last ? still + 1 : 0;
      last = now;
      return still === 10;
    },
    { what: `${name} to stand still` },
  );
  return last;
}
