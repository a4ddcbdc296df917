// A proxy that traces, for the tests of all tracers.

import type { IncomingHttpHeaders, RequestListener } from 'node:http';
import type { ProxyProgram } from '../harness/envoy.js';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  type HttpAnswer,
  type HttpRequestOptions,
  httpListener,
  httpRequest,
  ROUTER_FILTER,
  startBaton,
  startUpstream,
  staticCluster,
  type Teardown,
} from '../harness/index.js';

export interface TracedProxy {
  readonly baton: BatonProcess;
  /** The host's address. */
  readonly host: string;
  /** Headers of the requests that the host has received. */
  readonly seen: IncomingHttpHeaders[];
  /** Sends a request for host w.x, to the main listener. */
  request(path: string, headers?: Record<string, string>, more?: HttpRequestOptions): Promise<HttpAnswer>;
  /** Sends a request to another listener. */
  requestOf(listener: string, path: string, headers?: Record<string, string>): Promise<HttpAnswer>;
}

export interface TracedProxyOptions {
  readonly tracing: Config;
  readonly routes?: Config[];
  readonly clusters?: Config[];
  readonly manager?: Config;
  readonly listener?: Config;
  /** Further listeners by name: the fields of their connection managers. */
  readonly others?: Readonly<Record<string, Config>>;
  readonly extra?: Config;
  readonly args?: readonly string[];
  readonly env?: Record<string, string>;
  readonly upstream?: RequestListener;
  /** Runtime values. */
  readonly runtime?: Config;
}

export const ROUTE_ALL: Config = { match: { prefix: '/' }, route: { cluster: 'host' } };

/** Starts a proxy whose spans are reported one by one. */
export async function startTracedProxy(
  t: Teardown,
  program: ProxyProgram,
  options: TracedProxyOptions,
): Promise<TracedProxy> {
  const { args = [], clusters = [], extra = {}, listener = {}, manager = {}, routes = [ROUTE_ALL], runtime } = options;
  const seen: IncomingHttpHeaders[] = [];
  const host = await startUpstream(t, (request, response) => {
    seen.push(request.headers);
    if (options.upstream !== undefined) return options.upstream(request, response);
    response.end('hello');
  });
  const common = {
    route_config: { name: 'all', virtual_hosts: [{ name: 'all', domains: ['*'], routes }] },
    http_filters: [ROUTER_FILTER],
  };
  const main = httpListener('main', 0, { tracing: options.tracing, ...common, ...manager });
  const others = Object.entries(options.others ?? {});
  const values = { 'tracing.opentelemetry.min_flush_spans': 1, 'tracing.zipkin.min_flush_spans': 1, ...runtime };
  const baton = await startBaton(t, {
    ...program,
    args: ['--service-node', 'node-1', '--service-cluster', 'edge', '--service-zone', 'z1', ...args],
    env: options.env ?? {},
    config: bootstrap({
      listeners: [
        { ...main, ...listener },
        ...others.map(([name, own]) => httpListener(name, 0, { ...common, ...own })),
      ],
      clusters: [staticCluster('host', host.port), staticCluster('none', []), ...clusters],
      extra: { layered_runtime: { layers: [{ name: 'static', static_layer: values }] }, ...extra },
    }),
  });
  const requestOf: TracedProxy['requestOf'] = async (name, path, headers = {}) =>
    httpRequest(await baton.listenerPort(name), path, { headers: { host: 'w.x', ...headers } });
  return {
    baton,
    host: `127.0.0.1:${host.port}`,
    seen,
    request: async (path, headers = {}, more = {}) =>
      httpRequest(await baton.listenerPort('main'), path, { ...more, headers: { host: 'w.x', ...headers } }),
    requestOf,
  };
}

export const tracer = (name: string, message: string, fields: Config): Config => ({
  name: `envoy.tracers.${name}`,
  typed_config: { '@type': `type.googleapis.com/envoy.config.trace.v3.${message}`, ...fields },
});
