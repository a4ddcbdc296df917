// A Baton whose listeners, routes, clusters and endpoints are changed one after the other; each change is observed before the
// next.

import {
  type BatonOptions,
  type BatonProcess,
  bootstrap,
  type Config,
  freePort,
  httpListener,
  httpRequest,
  isRefused,
  loopback,
  routeAllTo,
  startBaton,
  staticCluster,
  type Teardown,
  tcpListener,
  waitFor,
} from '../harness/index.js';
import type { ResourceSource } from './sources.js';

/** What an update changes. */
export const UPDATES = ['routes', 'endpoints', 'cluster', 'chain', 'listener', 'coming'] as const;

export type Update = (typeof UPDATES)[number];

export interface ChangingOptions extends Omit<BatonOptions, 'config'> {
  /** Ports of the HTTP origins that the cluster of all routes uses in turn, and of a TCP origin. */
  readonly origins: readonly number[];
  readonly tcpOrigin: number;
}

/** Long enough for a busy machine. */
const DEADLINE_MS = 60_000;

export class ChangingProxy {
  /** Listens on `http` and `tcp`, which no update changes, though the routes and the cluster behind `http` change. */
  readonly steady: { readonly http: number; readonly tcp: number };
  /** A listener that is changed: its filter chain alone, or as a whole. */
  readonly changing: number;
  /** A listener that is added and removed. */
  readonly coming: number;
  readonly #source: ResourceSource;
  readonly #origins: readonly number[];
  readonly #tcpOrigin: number;
  readonly #counts: Record<Update, number> = { routes: 0, endpoints: 0, cluster: 0, chain: 0, listener: 0, coming: 0 };
  #baton: BatonProcess | undefined;

  private constructor(source: ResourceSource, options: ChangingOptions, ports: readonly number[]) {
    const [http, tcp, changing, coming] = ports;
    this.steady = { http: http!, tcp: tcp! };
    this.changing = changing!;
    this.coming = coming!;
    this.#source = source;
    this.#origins = options.origins;
    this.#tcpOrigin = options.tcpOrigin;
  }

  static async start(t: Teardown, source: ResourceSource, options: ChangingOptions): Promise<ChangingProxy> {
    const ports = [await freePort(), await freePort(), await freePort(), await freePort()];
    const proxy = new ChangingProxy(source, options, ports);
    for (const update of UPDATES) proxy.#set(update);
    const { clusters, extra } = source;
    const config = bootstrap({ listeners: [], clusters: [...clusters], extra });
    proxy.#baton = await startBaton(t, { deadlineMs: DEADLINE_MS, ...options, config });
    await proxy.#shown(UPDATES);
    return proxy;
  }

  get baton(): BatonProcess {
    return this.#baton!;
  }

  /** Applies these updates at once, and resolves when all of them are observed. */
  async update(...updates: readonly Update[]): Promise<void> {
    for (const update of updates) {
      this.#counts[update]++;
      this.#set(update);
    }
    await this.#shown(updates);
  }

  /** Five updates each: in turn a listener changes its filter chain alone, and as a whole. */
  async rounds(count: number): Promise<void> {
    for (let left = count; left > 0; left--) {
      const part = this.#counts.chain > this.#counts.listener ? 'listener' : 'chain';
      await this.update('routes', 'endpoints', 'cluster', part, 'coming');
    }
  }

  async #shown(updates: readonly Update[]): Promise<void> {
    for (const update of updates) {
      await waitFor(() => this.#shows(update), {
        what: `update ${this.#counts[update]} of ${update}`,
        deadlineMs: DEADLINE_MS,
      });
    }
  }

  #set(update: Update): void {
    switch (update) {
      case 'routes':
        return this.#source.set('route', [this.#routes()]);
      case 'endpoints':
        return this.#source.set('endpoints', [assignment(this.#hosts())]);
      case 'cluster':
        return this.#source.set('cluster', this.#clusters());
      case 'chain':
      case 'listener':
        return this.#source.set('listener', this.#listeners());
      case 'coming':
        // A listener is added after the cluster that it uses, and removed before it.
        if (this.#isThere) this.#source.set('cluster', this.#clusters());
        this.#source.set('listener', this.#listeners());
        if (!this.#isThere) this.#source.set('cluster', this.#clusters());
    }
  }

  async #shows(update: Update): Promise<boolean> {
    const { steady, changing, coming } = this;
    switch (update) {
      case 'routes':
        return (await httpRequest(steady.http)).headers['x-routes'] === String(this.#counts.routes);
      case 'endpoints': {
        const { body } = await this.baton.admin('/clusters');
        const found = [...body.matchAll(/^app::127\.0\.0\.1:(\d+)::cx_active/gm)].map(([, port]) => Number(port));
        return found.sort().join() === this.#hosts().sort().join();
      }
      case 'cluster': {
        const { body } = await this.baton.admin('/config_dump?resource=dynamic_active_clusters');
        const dumps = (JSON.parse(body) as { configs: { cluster: Config }[] }).configs;
        const app = dumps.find(({ cluster }) => cluster['name'] === 'app');
        return app?.cluster['connect_timeout'] === this.#connectTimeout;
      }
      case 'chain':
      case 'listener':
        return (await httpRequest(changing)).headers.server === this.#serverName;
      case 'coming':
        return this.#isThere ? (await httpRequest(coming)).status === 200 : await isRefused(coming);
    }
  }

  get #isThere(): boolean {
    return this.#counts.coming % 2 === 1;
  }

  get #serverName(): string {
    return `chain ${this.#counts.chain} of ${this.#counts.listener}`;
  }

  get #connectTimeout(): string {
    return `${20 + this.#counts.cluster}s`;
  }

  #routes(): Config {
    const value = String(this.#counts.routes);
    return { ...routeAllTo('app'), name: 'routes', response_headers_to_add: [{ header: { key: 'x-routes', value } }] };
  }

  /** All of the origins, and in turn all but one. */
  #hosts(): number[] {
    const { endpoints } = this.#counts;
    if (endpoints % 2 === 0) return [...this.#origins];
    return this.#origins.filter((_, index) => index !== ((endpoints - 1) / 2) % this.#origins.length);
  }

  #clusters(): Config[] {
    const eds_config = this.#source.configSource('endpoints', 'app');
    const app = { name: 'app', type: 'EDS', eds_cluster_config: { eds_config }, connect_timeout: this.#connectTimeout };
    const always = [app, staticCluster('tcp', this.#tcpOrigin)];
    return this.#isThere ? [...always, staticCluster('coming', this.#origins[0]!)] : always;
  }

  #listeners(): Config[] {
    const config_source = this.#source.configSource('route', 'routes');
    const rds = { route_config_name: 'routes', config_source };
    const always = [
      httpListener('steady', this.steady.http, { rds }),
      tcpListener('tcp', this.steady.tcp, { cluster: 'tcp' }),
      {
        ...httpListener('changing', this.changing, { rds, server_name: this.#serverName }),
        per_connection_buffer_limit_bytes: 1_000_000 + this.#counts.listener,
      },
    ];
    if (!this.#isThere) return always;
    return [...always, httpListener('coming', this.coming, { route_config: routeAllTo('coming') })];
  }
}

function assignment(ports: readonly number[]): Config {
  const lb_endpoints = ports.map((port) => ({ endpoint: { address: loopback(port) } }));
  return { cluster_name: 'app', endpoints: [{ lb_endpoints }] };
}
