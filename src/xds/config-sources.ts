// All sources of configuration of a server: each subscription goes to the file or the management server that it names. Nothing is
// loaded, watched or connected until somebody subscribes.

import { BatonError } from '../common/errors.js';
import type { Bootstrap, ConfigSource, PathConfigSource } from '../config/generated/api.js';
import type { LoadCounts } from '../config/load/load.js';
import type { ClusterHosts } from '../grpc/cluster-hosts.js';
import type { StatsStore } from '../stats/store.js';
import { FileSource } from './file-source.js';
import { CachedReader } from './reading/cached-reader.js';
import { ReadingThread } from './reading/reading-thread.js';
import { type DynamicOptions, readingSettings } from './reading/settings.js';
import type { ConfigSources, Subscription, SubscriptionRequest } from './subscription.js';

/** What subscriptions need of the server that has them. */
export interface SourcesHost {
  /** With the node as the command line has changed it. */
  readonly bootstrap: Bootstrap;
  readonly store: StatsStore;
  /** For gRPC channels to clusters. */
  readonly hosts: ClusterHosts;
  readonly dynamic: DynamicOptions;
  /** What was counted while resources were read. */
  readonly counted: (counts: LoadCounts) => void;
  /** What should not happen, and was caught. */
  readonly failed: (what: string, error: unknown) => void;
}

export class ServerConfigSources implements ConfigSources {
  readonly #subscriptions = new Set<Subscription>();
  /** By what is read, and how it is watched. */
  readonly #files = new Map<string, FileSource>();

  readonly #host: SourcesHost;
  #thread: ReadingThread | undefined;

  constructor(host: SourcesHost) {
    this.#host = host;
  }

  subscribe<M>(request: SubscriptionRequest<M>): Subscription {
    const inner = this.#begin(request as SubscriptionRequest);
    const subscription: Subscription = {
      setNames: (names) => inner.setNames(names),
      close: () => {
        if (this.#subscriptions.delete(subscription)) inner.close();
      },
    };
    this.#subscriptions.add(subscription);
    return subscription;
  }

  /** Ends what is left of subscriptions, and what they needed. */
  async close(): Promise<void> {
    for (const subscription of this.#subscriptions) subscription.close();
    await this.#thread?.close();
  }

  /** Shared by all subscriptions; it runs only while something is read. */
  get #reading(): ReadingThread {
    const { bootstrap, dynamic, counted } = this.#host;
    this.#thread ??= new ReadingThread({ settings: readingSettings(bootstrap, dynamic), counted });
    return this.#thread;
  }

  #begin(request: SubscriptionRequest): Subscription {
    const { source } = request;
    const file = source.path_config_source ?? (source.path === undefined ? undefined : { path: source.path });
    if (file !== undefined) return this.#subscribeToFile(file, request);
    throw new BatonError('INTERNAL', `a source of configuration that the loader refuses: ${kindOf(source)}`);
  }

  #subscribeToFile(file: PathConfigSource, request: SubscriptionRequest): Subscription {
    const { type } = request;
    const path = file.path!;
    const watchedDirectory = file.watched_directory?.path;
    const key = JSON.stringify([type, path, watchedDirectory]);
    let source = this.#files.get(key);
    if (source === undefined) {
      const reader = new CachedReader(this.#reading);
      const { store, failed } = this.#host;
      source = new FileSource({ path, watchedDirectory, type, reader, store, failed });
      this.#files.set(key, source);
    }
    const shared = source;
    const inner = shared.subscribe(request);
    return {
      setNames: (names) => inner.setNames(names),
      close: () => {
        inner.close();
        if (!shared.isUnused) return;
        shared.close();
        if (this.#files.get(key) === shared) this.#files.delete(key);
      },
    };
  }
}

function kindOf({ api_config_source: api, ads, self }: ConfigSource): string {
  if (api !== undefined) return `api_config_source ${api.api_type ?? ''}`;
  return ads !== undefined ? 'ads' : self !== undefined ? 'self' : 'none';
}
