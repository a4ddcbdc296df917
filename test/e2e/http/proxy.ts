// Starts a Baton with HTTP listeners in front of a test's upstreams, and builds its configuration.

import {
  type BatonOptions,
  type BatonProcess,
  bootstrap,
  type Config,
  type HttpAnswer,
  type HttpRequestOptions,
  httpListener,
  httpRequest,
  startBaton,
  type Teardown,
} from '../harness/index.js';

export interface ProxyOptions extends Omit<BatonOptions, 'config'> {
  /** Connection managers by listener name. */
  listeners: Record<string, Config>;
  clusters?: Config[];
  /** Merged into each listener. */
  listenerOptions?: Config;
  /** Merged over the bootstrap. */
  extra?: Config;
}

/** A Baton with named listeners. */
export interface HttpProxy {
  readonly baton: BatonProcess;
  /** Ports by listener name. */
  readonly ports: Readonly<Record<string, number>>;
  /** The port of the first listener. */
  readonly port: number;
  /** Sends one request to the first listener, on a separate connection. */
  get(path: string, options?: HttpRequestOptions): Promise<HttpAnswer>;
  /** Sends one request to a listener by name. */
  on(listener: string, path: string, options?: HttpRequestOptions): Promise<HttpAnswer>;
}

export async function startProxy(t: Teardown, options: ProxyOptions): Promise<HttpProxy> {
  const { listeners, clusters = [], listenerOptions = {}, extra = {}, ...rest } = options;
  const names = Object.keys(listeners);
  const baton = await startBaton(t, {
    args: ['-l', 'warning'],
    ...rest,
    config: bootstrap({
      listeners: names.map((name) => ({ ...httpListener(name, 0, listeners[name]!), ...listenerOptions })),
      clusters,
      extra,
    }),
  });
  const ports: Record<string, number> = {};
  for (const name of names) ports[name] = await baton.listenerPort(name);
  const port = ports[names[0]!]!;
  return {
    baton,
    ports,
    port,
    get: (path, request) => httpRequest(port, path, request),
    on: (name, path, request) => httpRequest(ports[name]!, path, request),
  };
}

/** Returns a connection manager with one virtual host for every domain. */
export function managerOf(routes: Config[], more: Config = {}): Config {
  return { route_config: routeConfig([{ name: 'all', domains: ['*'], routes }]), ...more };
}

export function routeConfig(virtualHosts: Config[], more: Config = {}): Config {
  return { name: 'routes', virtual_hosts: virtualHosts, ...more };
}

/** Returns a route with a direct response whose text identifies the route. */
export function answering(match: Config, text: string, more: Config = {}): Config {
  return { match, direct_response: { status: 200, body: { inline_string: text } }, ...more };
}

export function routeTo(match: Config, cluster: string, action: Config = {}, more: Config = {}): Config {
  return { match, route: { cluster, ...action }, ...more };
}

/** Returns an element of request_headers_to_add and similar fields. */
export function headerOption(key: string, value: string, more: Config = {}): Config {
  return { header: { key, value }, ...more };
}
