// Subscribes to a management server as the server does, with a reader that needs no thread: resources whose names begin with
// `bad` are refused.

import type { ApiConfigSource, ConfigSource } from '../../src/config/generated/api.js';
import { encodeJson, loadMessages } from '../../src/config/schema/messages.js';
import { StatsStore } from '../../src/stats/store.js';
import { GrpcSources } from '../../src/xds/grpc/grpc-sources.js';
import { RESOURCE_MESSAGES, type Resource, type ResourceType, type Update } from '../../src/xds/resource.js';
import type { ResourceReader } from '../../src/xds/resource-reader.js';
import type { Rejection, ResourceNames, Subscription } from '../../src/xds/subscription.js';
import type { ControlPlane } from '../e2e/harness/control-plane.js';
import { type Teardown, waitFor } from '../e2e/harness/index.js';
import { http2Cluster, startCalls } from '../grpc/calls.js';

const NODE = 'envoy.config.core.v3.Node';
const types = loadMessages(NODE, ...Object.values(RESOURCE_MESSAGES));
const encodedNode = encodeJson(types[NODE], { id: 'node-1', dynamic_parameters: { xds: { params: { zone: 'a' } } } });

export interface Seen {
  readonly updates: Update[];
  readonly subscription: Subscription;
  /** Number of fetchTimedOut() calls. */
  timeouts: number;
  /** Rejections by name. */
  readonly rejects: Map<string, string>;
  /** Resolves when it has a resource of this name and version. */
  has(name: string, version?: string): Promise<Resource>;
  /** Resolves when the resource has been removed. */
  loses(name: string): Promise<unknown>;
}

export interface SubscribeOptions {
  readonly source: ConfigSource;
  readonly type: ResourceType;
  readonly names?: ResourceNames;
  readonly statPrefix?: string;
}

export interface Subscriber {
  readonly store: StatsStore;
  readonly sources: GrpcSources;
  readonly failures: string[];
  /** While set, readers wait for it. */
  slowness: Promise<void> | undefined;
  /** Number of reads that have begun. */
  reads: number;
  subscribe(options: SubscribeOptions): Seen;
  waitForStat(name: string, value: number): Promise<unknown>;
}

export function startSubscriber(t: Teardown, plane: Pick<ControlPlane, 'port'>, adsConfig?: object): Subscriber {
  const store = new StatsStore({ workers: 1 });
  const { calls } = startCalls(t, [http2Cluster('control-plane', plane.port)]);
  const failures: string[] = [];
  const sources = new GrpcSources({
    store,
    calls,
    adsConfig: adsConfig as ApiConfigSource | undefined,
    node: () => Promise.resolve(encodedNode),
    createReader: () =>
      createReader(() => {
        subscriber.reads++;
        return subscriber.slowness;
      }),
    failed: (what, error) => failures.push(`${what}: ${error}`),
  });
  const subscriber: Subscriber = {
    store,
    sources,
    failures,
    slowness: undefined,
    reads: 0,
    subscribe: (options) => subscribe(sources, options),
    waitForStat: (name, value) => waitFor(() => store.value(name) === value, { what: `${name} = ${value}` }),
  };
  t.teardown(() => sources.close());
  return subscriber;
}

function subscribe(
  sources: GrpcSources,
  { source, type, names = '*', statPrefix = `${type}.` }: SubscribeOptions,
): Seen {
  const updates: Update[] = [];
  const rejects = new Map<string, string>();
  const watcher = {
    update(update: Update): readonly Rejection[] {
      updates.push(update);
      return update.resources.flatMap(({ name }) => {
        const details = rejects.get(name);
        return details === undefined ? [] : [{ name, details }];
      });
    },
    fetchTimedOut() {
      seen.timeouts++;
    },
  };
  const latest = (name: string) =>
    updates.flatMap(({ resources }) => resources).findLast((resource) => resource.name === name);
  const seen: Seen = {
    updates,
    rejects,
    timeouts: 0,
    subscription: sources.subscribe({ source, type, names, statPrefix, watcher }),
    has: (name, version) =>
      waitFor(
        () => {
          const resource = latest(name);
          return version === undefined || resource?.version === version ? resource : undefined;
        },
        { what: `${name} ${version ?? ''}` },
      ),
    loses: (name) => waitFor(() => updates.some(({ removed }) => removed.includes(name)), { what: `${name} gone` }),
  };
  return seen;
}

const NAMELESS = { name: '', aliases: [], sensitive: [] };

function createReader(slowness: () => Promise<void> | undefined): ResourceReader {
  return {
    async read(type, version, encoded) {
      await slowness();
      const message = types[RESOURCE_MESSAGES[type]];
      const all = encoded.map((each): Resource => {
        if (!each.typeUrl.endsWith(`/${message.fullName.slice(1)}`)) {
          return { ...NAMELESS, version, message: undefined };
        }
        const read = message.toObject(message.decode(each.value)) as { name?: string; cluster_name?: string };
        const name = read.name ?? read.cluster_name ?? '';
        return {
          name,
          version: each.version || version,
          message: read,
          aliases: each.aliases,
          sensitive: [],
        };
      });
      const isBad = ({ name }: Resource) => name === '' || name.startsWith('bad');
      return {
        resources: all.filter((each) => !isBad(each)),
        refused: all.filter(isBad).map((each) => ({ ...each, details: `${each.name || 'a nameless one'} is no good` })),
        ttlMs: new Map(),
      };
    },
    readText: () => Promise.reject(new Error('unused')),
    readFile: () => Promise.reject(new Error('not here')),
    close() {},
  };
}
