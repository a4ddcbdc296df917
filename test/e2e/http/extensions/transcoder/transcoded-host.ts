// A gRPC host behind the transcoder. It echoes each request, unless a header says what it answers.

import { readFileSync } from 'node:fs';
import { createServer, type OutgoingHttpHeaders, type ServerHttp2Session } from 'node:http2';
import type { AddressInfo } from 'node:net';
import t from 'tap';
import type { ProxyProgram } from '../../../harness/envoy.js';
import {
  type Config,
  HTTP2_CLUSTER,
  type HttpAnswer,
  ROUTER_FILTER,
  staticCluster,
  type Teardown,
} from '../../../harness/index.js';
import { managerOf, routeTo, startProxy } from '../../proxy.js';
import { frame } from '../grpc-host.js';

const SOURCES = '../../../../../../test/e2e/http/extensions/transcoder/';
const TYPE = 'type.googleapis.com/envoy.extensions.filters.http.grpc_json_transcoder.v3.GrpcJsonTranscoder';

/** The compiled form of library.proto. */
export const LIBRARY = readFileSync(new URL(`${SOURCES}library.pb`, import.meta.url)).toString('base64');
export const RECORDED = readFileSync(new URL(`${SOURCES}requests.jsonl`, import.meta.url), 'utf8');

export interface ReceivedCall {
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: Buffer;
}

export interface Transcoded {
  readonly calls: ReceivedCall[];
  readonly port: number;
  send(method: string, path: string, body?: string | Buffer, headers?: Record<string, string>): Promise<HttpAnswer>;
  stats(prefix: string): Promise<Record<string, number>>;
  /** Returns how many responses count as errors of the host. */
  hostErrors(): Promise<number>;
}

/** Returns messages in their frames, as hexadecimal text. */
export function frames(...messages: string[]): string {
  return messages.map((message) => frame(Buffer.from(message, 'hex')).toString('hex')).join('');
}

/** Configurations of the filter by listener; `route`: options of the route. */
export type Configurations<N extends string> = { readonly [name in N]: Configuration };

export interface Configuration {
  readonly route?: Config;
  readonly [option: string]: unknown;
}

/**
 * Returns a function that returns one proxy per program, with a listener for each configuration, and their host. Headers for the host:
 * `x-reply`, the body as hexadecimal text; `x-status`, `x-message` and `x-details` of the call; `x-only`, without a body; `x-plain`, a
 * response that is not gRPC.
 */
export function sharedTranscoders<N extends string>(configurations: Configurations<N>) {
  const started = new Map<string | undefined, Promise<{ readonly [name in N]: Transcoded }>>();
  return async (program: ProxyProgram) => {
    if (!started.has(program.command)) started.set(program.command, startTranscoders(program, configurations));
    return started.get(program.command)!;
  };
}

async function startTranscoders<N extends string>(
  program: ProxyProgram,
  configurations: Configurations<N>,
): Promise<{ readonly [name in N]: Transcoded }> {
  const calls: ReceivedCall[] = [];
  const port = await startHost(t, calls);
  const names = Object.keys(configurations) as N[];
  const manager = ({ route = {}, ...config }: Configuration) => {
    const typed_config = {
      '@type': TYPE,
      proto_descriptor_bin: LIBRARY,
      services: ['test.library.Library'],
      ...config,
    };
    const http_filters = [{ name: 'json', typed_config }, ROUTER_FILTER];
    return managerOf([routeTo({ prefix: '/' }, 'host', {}, route)], { http_filters });
  };
  const proxy = await startProxy(t, {
    ...program,
    args: ['-l', 'warning', '--concurrency', '1'],
    listeners: Object.fromEntries(names.map((name) => [name, manager(configurations[name])])),
    clusters: [staticCluster('host', port, HTTP2_CLUSTER)],
  });
  const of = (name: N): Transcoded => ({
    calls,
    port: proxy.ports[name]!,
    send: (method, path, body, headers = {}) =>
      proxy.on(name, path, {
        method,
        headers: { 'content-type': 'application/json', ...headers },
        body: body ?? '',
      }),
    stats: (prefix) => proxy.baton.stats(prefix),
    hostErrors: async () =>
      Number(/^host::127.*::rq_error::(\d+)$/m.exec((await proxy.baton.admin('/clusters')).body)![1]),
  });
  return Object.fromEntries(names.map((name) => [name, of(name)])) as { readonly [name in N]: Transcoded };
}

/** The configuration of a route. */
export function routeRules(config: Config): Config {
  return { typed_per_filter_config: { json: { '@type': TYPE, proto_descriptor_bin: LIBRARY, ...config } } };
}

async function startHost(t: Teardown, calls: ReceivedCall[]): Promise<number> {
  const sessions = new Set<ServerHttp2Session>();
  const server = createServer();
  server.on('session', (session) => sessions.add(session));
  server.on('stream', (stream, headers) => {
    const parts: Buffer[] = [];
    stream.on('error', () => {});
    stream.on('data', (part: Buffer) => parts.push(part));
    stream.on('end', () => {
      const body = Buffer.concat(parts);
      calls.push({ headers, body });
      const given = (name: string) => headers[name] as string | undefined;
      if (given('x-plain') !== undefined) {
        stream.respond({ ':status': Number(given('x-plain')), 'content-type': 'text/plain' });
        return void stream.end('plain');
      }
      const status: OutgoingHttpHeaders = { 'grpc-status': given('x-status') ?? '0' };
      if (given('x-message') !== undefined) status['grpc-message'] = given('x-message');
      if (given('x-details') !== undefined) status['grpc-status-details-bin'] = given('x-details');
      const head = { ':status': 200, 'content-type': 'application/grpc' };
      if (given('x-only') !== undefined) return stream.respond({ ...head, ...status }, { endStream: true });
      stream.respond(head, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers(status));
      const reply = given('x-reply');
      stream.end(reply === undefined ? body : Buffer.from(reply, 'hex'));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    for (const session of sessions) session.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}
