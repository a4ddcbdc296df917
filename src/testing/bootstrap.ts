// The bootstrap of a Baton that a test starts.

import { resolve } from 'node:path';
import type { BatonTest, TestedModule } from '../api/testing.js';
import { echo, type Servers } from './servers.js';

type Json = Readonly<Record<string, unknown>>;

const TYPES = 'type.googleapis.com/';
const ADMIN = { address: { socket_address: { address: '127.0.0.1', port_value: 0 } } };

/** Starts the servers of the test, and returns a bootstrap that uses them. */
export async function bootstrapOf(test: BatonTest, servers: Servers): Promise<Json> {
  if (test.bootstrap?.['static_resources'] !== undefined) return { admin: ADMIN, ...test.bootstrap };
  const modules = new Modules();
  const httpFilters = modules.extensions(test.filters, 'baton.filters.http.script.v1.Script');
  const networkFilters = modules.extensions(test.networkFilters, 'baton.filters.network.script.v1.Script');
  const loggers = modules.extensions(test.accessLoggers, 'baton.access_loggers.script.v1.Script');
  const clusters: Json[] = [];
  for (const [name, server] of Object.entries({ host: test.host ?? echo, ...test.clusters }))
    clusters.push(clusterOf(name, await servers.portOf(server)));
  return {
    admin: ADMIN,
    bootstrap_extensions: modules.registration,
    layered_runtime: { layers: [{ name: 'test', static_layer: test.runtime ?? {} }] },
    static_resources: { listeners: [listenerOf(networkFilters, httpFilters, loggers)], clusters },
    ...test.bootstrap,
  };
}

/** The modules of a test, which get names of their own. */
class Modules {
  readonly #modules: Record<string, Json> = {};

  extensions(modules: BatonTest['filters'] = [], type: string): Json[] {
    return modules.map((module) => this.#extension(typeof module === 'string' ? { filename: module } : module, type));
  }

  #extension({ config, failurePolicy, filename, timeout }: TestedModule, type: string): Json {
    const name = this.#nameOf(resolve(filename));
    const settings = { config, failure_policy: failurePolicy, timeout };
    return { name, typed_config: { '@type': TYPES + type, module: name, ...settings } };
  }

  /** Returns the name of a file without its ending, with a number if another file has that name. */
  #nameOf(filename: string): string {
    const base = /([^/]*?)(?:\.[^./]*)?$/.exec(filename)![1]!;
    for (let number = 1; ; number++) {
      const name = number === 1 ? base : `${base}-${number}`;
      if (this.#modules[name] !== undefined && this.#modules[name]['filename'] !== filename) continue;
      this.#modules[name] = { filename };
      return name;
    }
  }

  get registration(): Json[] {
    if (Object.keys(this.#modules).length === 0) return [];
    return [{ name: 'scripts', typed_config: { '@type': `${TYPES}baton.scripts.v1.Scripts`, modules: this.#modules } }];
  }
}

function listenerOf(networkFilters: readonly Json[], httpFilters: readonly Json[], loggers: readonly Json[]): Json {
  const router = { '@type': `${TYPES}envoy.extensions.filters.http.router.v3.Router` };
  const routes = [{ match: { prefix: '/' }, route: { cluster: 'host' } }];
  const manager = {
    '@type': `${TYPES}envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager`,
    stat_prefix: 'test',
    access_log: loggers,
    route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] },
    http_filters: [...httpFilters, { name: 'envoy.filters.http.router', typed_config: router }],
  };
  const name = 'envoy.filters.network.http_connection_manager';
  return {
    name: 'test',
    address: ADMIN.address,
    filter_chains: [{ filters: [...networkFilters, { name, typed_config: manager }] }],
  };
}

function clusterOf(name: string, port: number): Json {
  const address = { socket_address: { address: '127.0.0.1', port_value: port } };
  return {
    name,
    type: 'STATIC',
    load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: [{ endpoint: { address } }] }] },
  };
}
