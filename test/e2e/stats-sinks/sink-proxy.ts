// A proxy with stats sinks: one route to an upstream, and twenty flushes a second.

import {
  type BatonProcess,
  bootstrap,
  type Config,
  httpListener,
  httpRequest,
  routeAllTo,
  startBaton,
  startUpstream,
  staticCluster,
  type Teardown,
} from '../harness/index.js';

export interface SinkProxy {
  readonly baton: BatonProcess;
  /** Sends requests through the proxy, one after the other. */
  request(count: number, path?: string): Promise<void>;
}

/** Starts the proxy. `sinks` are typed_configs; the upstream answers 200, and `/404` with 404. */
export async function startSinkProxy(
  t: Teardown,
  sinks: readonly Config[],
  options: { readonly clusters?: Config[]; readonly extra?: Config; readonly args?: string[] } = {},
): Promise<SinkProxy> {
  const upstream = await startUpstream(t, (request, response) => {
    response.statusCode = request.url === '/404' ? 404 : 200;
    response.end('body');
  });
  const baton = await startBaton(t, {
    config: bootstrap({
      listeners: [httpListener('main', 0, { route_config: routeAllTo('host') })],
      clusters: [staticCluster('host', upstream.port), ...(options.clusters ?? [])],
      extra: {
        stats_flush_interval: '0.05s',
        stats_sinks: sinks.map((config, index) => ({ name: `sink${index}`, typed_config: config })),
        ...options.extra,
      },
    }),
    args: options.args ?? ['--concurrency', '2'],
  });
  const port = await baton.listenerPort('main');
  return {
    baton,
    async request(count, path = '/') {
      for (let i = 0; i < count; i++) await httpRequest(port, path);
    },
  };
}
