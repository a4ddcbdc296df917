// Hosts for tests of health checks, with configurable answers to checks, which answer all other requests with their name;
// clusters that check them.

import type { IncomingMessage } from 'node:http';
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
  type Upstream,
} from '../harness/index.js';

export interface CheckAnswer {
  status: number;
  headers?: Record<string, string>;
}

export class CheckedUpstream {
  readonly upstream: Upstream;
  /** How checks are answered; undefined: not at all. */
  answer: CheckAnswer | undefined = { status: 200 };
  /** Status and further headers of other responses. */
  status = 200;
  headers: Record<string, string> = {};
  /** The checks received. */
  checks: IncomingMessage[] = [];

  private constructor(upstream: Upstream) {
    this.upstream = upstream;
  }

  static async start(t: Teardown, name: string): Promise<CheckedUpstream> {
    let host: CheckedUpstream | undefined;
    const upstream = await startUpstream(t, (request, response) => {
      const { answer, checks, headers, status } = host!;
      if (request.url === '/healthz') {
        checks.push(request);
        if (answer !== undefined) response.writeHead(answer.status, answer.headers).end();
      } else response.writeHead(status, headers).end(name);
    });
    host = new CheckedUpstream(upstream);
    return host;
  }

  get port(): number {
    return this.upstream.port;
  }
}

/** Short intervals, and timeouts that a busy machine can meet. */
const SHORT_INTERVALS = {
  timeout: '20s',
  interval: '0.02s',
  no_traffic_interval: '0.02s',
  unhealthy_threshold: 1,
  healthy_threshold: 1,
};
/** Only healthy hosts are used, and updates apply at once. */
const NO_PANIC = { common_lb_config: { healthy_panic_threshold: { value: 0 }, update_merge_window: '0s' } };

/** Returns a static cluster of these ports with short check intervals. */
export function checked(name: string, ports: readonly number[], check: Config, more: Config = {}): Config {
  return staticCluster(name, [...ports], { health_checks: [{ ...SHORT_INTERVALS, ...check }], ...NO_PANIC, ...more });
}

export function http(more: Config = {}): Config {
  return { http_health_check: { path: '/healthz', ...more } };
}

/** Starts a Baton that sends all requests to the cluster `api`. */
export async function startWith(
  t: Teardown,
  cluster: Config,
  wait: 'live' | 'spawned' = 'live',
): Promise<BatonProcess> {
  const listeners = [httpListener('http', 0, { route_config: routeAllTo('api') })];
  return startBaton(t, { config: bootstrap({ listeners, clusters: [cluster] }), args: ['--concurrency', '2'], wait });
}

/** Returns the health flags of the cluster's hosts, by port. */
export async function flags(baton: BatonProcess, name = 'api'): Promise<Record<string, string>> {
  const { body } = await baton.admin('/clusters');
  const lines = body.matchAll(new RegExp(`^${name}::127\\.0\\.0\\.1:(\\d+)::health_flags::(.*)$`, 'gm'));
  return Object.fromEntries(Array.from(lines, ([, port, text]) => [port!, text!]));
}

/** Returns the names of the hosts that answer `count` requests. */
export async function answers(baton: BatonProcess, count = 8): Promise<string[]> {
  const port = await baton.listenerPort('http');
  const bodies: string[] = [];
  for (let i = 0; i < count; i++) bodies.push((await httpRequest(port)).body);
  return [...new Set(bodies)].sort();
}
