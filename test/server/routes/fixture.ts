// Routes on a primary without a server: sources that a test controls, and what workers would receive.

import { runSync } from '../../../src/common/time/next-turn.js';
import type { RouteConfiguration, ScopedRoutes, VirtualHost } from '../../../src/config/generated/api.js';
import type { PrimaryPart, PrimaryPort, RouteFilters } from '../../../src/extensions/factories.js';
import { EXTENSIONS } from '../../../src/extensions/index.js';
import { ExtensionRegistry } from '../../../src/extensions/registry.js';
import { InitManager } from '../../../src/server/init/init-manager.js';
import { PrimaryRouteSet } from '../../../src/server/routes/primary-route-set.js';
import { RouteSecrets } from '../../../src/server/routes/route-secrets.js';
import type { SnapshotParts } from '../../../src/server/workers/snapshots.js';
import { WorkerScopes } from '../../../src/server/workers/worker-scopes.js';
import { StatsStore } from '../../../src/stats/store.js';
import { unpackRoutes } from '../../../src/worker/messages/packed-routes.js';
import type { RequestedHost } from '../../../src/worker/routes/awaited-hosts.js';
import type { Resource, Update } from '../../../src/xds/resource.js';
import { type Rejection, type SubscriptionRequest, stepsOf } from '../../../src/xds/subscription.js';

export const SOURCE = { ads: {} };
export const NO_FILTERS: RouteFilters = { list: [], signature: '' };

/** A subscription that was started. */
export interface TestSubscription extends SubscriptionRequest {
  isClosed: boolean;
}

export function resource<M extends { readonly name?: string }>(message: M, version = '1'): Resource<M> {
  return { name: message.name ?? '', version, message, aliases: [], sensitive: [] };
}

/** An update of everything. */
export function all<M extends { readonly name?: string }>(...messages: M[]): Update<M> {
  return {
    version: '1',
    isComplete: true,
    resources: messages.map((message) => resource(message)),
    refused: [],
    removed: [],
  };
}

export function routesTo(cluster: string, name = 'routes', more: RouteConfiguration = {}): RouteConfiguration {
  return { name, virtual_hosts: [hostTo(cluster)], ...more };
}

export function hostTo(cluster: string, domain = '*'): VirtualHost {
  return { name: domain, domains: [domain], routes: [{ match: { prefix: '/' }, route: { cluster } }] };
}

export class RoutesFixture {
  readonly store = new StatsStore({ workers: 1 });
  readonly subscriptions: TestSubscription[] = [];
  readonly published: SnapshotParts[] = [];
  readonly settled: RequestedHost[] = [];
  readonly clusters = new Set(['known']);
  readonly port: PrimaryPort = {
    workers: 1,
    publish: (state) => this.settled.push(state as RequestedHost),
    onMessage: undefined,
    onWorkerDeath: undefined,
  };
  readonly routes = new PrimaryRouteSet({
    store: this.store,
    scopes: new WorkerScopes(this.store),
    whenApplied: (callback) => callback(),
    onDemand: this.port,
    secrets: new RouteSecrets(new ExtensionRegistry(EXTENSIONS), {
      problem: () => undefined,
      use: () => ({ close() {} }),
    }),
    scripts: undefined,
    clusterProblem: (name) => (this.clusters.has(name) ? undefined : `unknown cluster '${name}'`),
    publish: (parts) => this.published.push(parts),
    sources: {
      subscribe: (request) => {
        const subscription: TestSubscription = { ...(request as unknown as SubscriptionRequest), isClosed: false };
        this.subscriptions.push(subscription);
        return {
          setNames: (names) => void Object.assign(subscription, { names }),
          close: () => {
            subscription.isClosed = true;
          },
        };
      },
    },
  });

  /** Adds a connection manager with the routes of that name; `init` has the targets of its listener. */
  useRds(init = new InitManager('listener'), name = 'routes', filters = NO_FILTERS): PrimaryPart {
    return this.routes.attach({
      manager: { rds: { config_source: SOURCE, route_config_name: name } },
      statPrefix: 'http.in.',
      filters,
      waitFor: (target) => init.add(target),
    });
  }

  useScopes(scoped: ScopedRoutes, init = new InitManager('listener'), filters = NO_FILTERS): PrimaryPart {
    return this.routes.attach({
      manager: { scoped_routes: scoped },
      statPrefix: 'http.in.',
      filters,
      waitFor: (target) => init.add(target),
    });
  }

  /** Returns the open subscriptions of a type. */
  of(type: SubscriptionRequest['type']): TestSubscription[] {
    return this.subscriptions.filter((subscription) => subscription.type === type && !subscription.isClosed);
  }

  /** Delivers an update on the first open subscription of a type. */
  send<M>(type: SubscriptionRequest['type'], update: Update<M>, index = 0): readonly Rejection[] {
    return runSync(stepsOf(this.of(type)[index]!.watcher.update(update)));
  }

  /** Returns the routes that a starting worker receives. */
  get configs(): (RouteConfiguration | undefined)[] {
    return this.routes.snapshots().routes.map(({ config }) => config && runSync(unpackRoutes(config)).config);
  }
}
