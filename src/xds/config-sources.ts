// All sources of configuration of a server: each subscription goes to the file or the management server that it names. Nothing is
// loaded, watched or connected until somebody subscribes.

import type { Bootstrap, Node, PathConfigSource } from '../config/generated/api.js';
import type { LoadCounts } from '../config/load/load.js';
import type { ClusterHosts } from '../grpc/cluster-hosts.js';
import type { StatsStore } from '../stats/store.js';
import { FileSource } from './file-source.js';
import type { GrpcSources } from './grpc/grpc-sources.js';
import { CachedReader } from './reading/cached-reader.js';
import { ReadingThread } from './reading/reading-thread.js';
import { type DynamicOptions, readingSettings } from './reading/settings.js';
import type { ConfigSources, ResourceNames, Subscription, SubscriptionRequest } from './subscription.js';

/** What subscriptions need of the server that has them. */
export interface SourcesHost {
  /** With the node as the command line has changed it. */
  readonly bootstrap: Bootstrap;
  /** As management servers are told of it. */
  readonly node: () => Node;
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
  readonly #host: SourcesHost;
  readonly #subscriptions = new Set<Subscription>();
  /** By what is read, and how it is watched. */
  readonly #files = new Map<string, FileSource>();
  #thread: ReadingThread | undefined;
  #grpc: Promise<GrpcSources> | undefined;

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
    (await this.#grpc?.catch(() => undefined))?.close();
    await this.#thread?.close();
  }

  #begin(request: SubscriptionRequest): Subscription {
    const file = request.source.path_config_source;
    return file === undefined ? this.#subscribeRemotely(request) : this.#subscribeToFile(file, request);
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

  /** What speaks gRPC is loaded first. */
  #subscribeRemotely(request: SubscriptionRequest): Subscription {
    let names: ResourceNames = request.names;
    let inner: Subscription | undefined;
    let isClosed = false;
    this.#grpc ??= this.#loadGrpc();
    this.#grpc
      .then((grpc) => {
        if (!isClosed) inner = grpc.subscribe({ ...request, names });
      })
      .catch((error: unknown) => this.#host.failed(`the subscription ${request.statPrefix} cannot begin`, error));
    return {
      setNames: (wanted) => {
        names = wanted;
        inner?.setNames(wanted);
      },
      close: () => {
        isClosed = true;
        inner?.close();
      },
    };
  }

  async #loadGrpc(): Promise<GrpcSources> {
    const { GrpcSources: Sources } = await import('./grpc/grpc-sources.js');
    const { store, hosts, bootstrap, node, failed } = this.#host;
    return new Sources({
      store,
      hosts,
      adsConfig: bootstrap.dynamic_resources?.ads_config,
      node: () => this.#reading.encode('envoy.config.core.v3.Node', node()),
      createReader: () => new CachedReader(this.#reading),
      failed,
    });
  }

  /** Shared by all subscriptions; it runs only while something is read. */
  get #reading(): ReadingThread {
    const { bootstrap, dynamic, counted } = this.#host;
    this.#thread ??= new ReadingThread({ settings: readingSettings(bootstrap, dynamic), counted });
    return this.#thread;
  }
}
