// The configuration sources in use: files, which are read and watched, and management servers, whose code is loaded by the first
// subscription to one.

import type { FileWatchOptions } from '../common/files/file-watch.js';
import { onDemand } from '../common/package/on-demand.js';
import { durationMs } from '../common/time/duration.js';
import { fileOfSource } from '../config/fields/file-of-source.js';
import type { ApiConfigSource, PathConfigSource } from '../config/generated/api.js';
import { FileSource } from './file-source.js';
import type { GrpcSources } from './grpc/grpc-sources.js';
import { PreparingReader } from './preparing-reader.js';
import { CachedReader } from './reading/cached-reader.js';
import { ReadingThread } from './reading/reading-thread.js';
import { readingSettings } from './reading/settings.js';
import type { ReadingSettings } from './reading/task.js';
import type { ResourceReader } from './resource-reader.js';
import type { SourcesContext } from './sources-context.js';
import { subscribeLater } from './subscribe-later.js';
import type { ConfigSources, Subscription, SubscriptionRequest } from './subscription.js';

export class ConnectedSources implements ConfigSources {
  readonly #context: SourcesContext;
  readonly #subscriptions = new Set<Subscription>();
  /** By type, path and watch options. */
  readonly #files = new Map<string, FileSource>();
  #thread: ReadingThread | undefined;
  readonly #loadGrpc = onDemand(() => import('./grpc/grpc-sources.js'));
  readonly #loadRest = onDemand(() => import('./rest/rest-source.js'));
  /** Undefined before the first subscription to a management server over gRPC. */
  #connecting: Promise<GrpcSources> | undefined;
  #grpc: GrpcSources | undefined;

  constructor(context: SourcesContext) {
    this.#context = context;
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

  /** Returns a reader for one subscription, or for resources that do not come from one. */
  reader(): ResourceReader {
    return new PreparingReader(new CachedReader(this.#reading), this.#context.prepare);
  }

  /** Checks later updates against another bootstrap. */
  bootstrapChanged(): void {
    this.#thread?.updateSettings(this.#settings);
  }

  /** Ends all subscriptions and releases their resources. */
  async close(): Promise<void> {
    for (const subscription of this.#subscriptions) subscription.close();
    (await this.#connecting?.catch(() => undefined))?.close();
    await this.#thread?.close();
  }

  #begin(request: SubscriptionRequest): Subscription {
    const file = fileOfSource(request.source);
    if (file !== undefined) return this.#subscribeToFile(file, request);
    const { api_config_source: api } = request.source;
    if (api?.api_type === 'REST') return subscribeLater(() => this.#rest(api), request, this.#context.failed);
    const connect = () => {
      this.#connecting = this.#connectByGrpc();
      return this.#connecting;
    };
    return subscribeLater(connect, request, this.#context.failed);
  }

  #subscribeToFile(file: PathConfigSource, request: SubscriptionRequest): Subscription {
    const { type } = request;
    const path = file.path!;
    const watch = watchOf(file);
    const key = JSON.stringify([type, path, watch]);
    let source = this.#files.get(key);
    if (source === undefined) {
      const reader = this.reader();
      const { store, failed } = this.#context;
      source = new FileSource({ path, watch, type, reader, store, failed });
      this.#files.set(key, source);
    }
    const shared = source;
    const closeUnused = () => {
      if (!shared.isUnused) return;
      shared.close();
      if (this.#files.get(key) === shared) this.#files.delete(key);
    };
    try {
      const inner = shared.subscribe(request);
      return {
        setNames: (names) => inner.setNames(names),
        close: () => {
          inner.close();
          closeUnused();
        },
      };
    } catch (error) {
      closeUnused();
      throw error;
    }
  }

  async #rest(api: ApiConfigSource): Promise<{ subscribe(request: SubscriptionRequest): Subscription }> {
    const { RestSource } = await this.#loadRest();
    const { calls, failed, node, store } = this.#context;
    const options = { calls, failed, node, store, reader: this.reader() };
    return { subscribe: (request) => new RestSource(request, api, options) };
  }

  async #connectByGrpc(): Promise<GrpcSources> {
    const { GrpcSources: Sources } = await this.#loadGrpc();
    const { store, calls, node, failed } = this.#context;
    this.#grpc ??= new Sources({
      store,
      calls,
      adsConfig: this.#context.bootstrap().dynamic_resources?.ads_config,
      node: () => this.#reading.encode('envoy.config.core.v3.Node', node),
      createReader: () => this.reader(),
      failed,
    });
    return this.#grpc;
  }

  /** The reading thread that all subscriptions share. It runs only while something is read. */
  get #reading(): ReadingThread {
    this.#thread ??= new ReadingThread({ settings: this.#settings, counted: this.#context.counted });
    return this.#thread;
  }

  get #settings(): ReadingSettings {
    return readingSettings(this.#context.bootstrap(), this.#context.dynamic);
  }
}

function watchOf({ poll_interval: interval, watched_directory: directory }: PathConfigSource): FileWatchOptions {
  return {
    within: directory && { path: directory.path!, seesContent: directory.watch_modify ?? false },
    pollMs: interval === undefined ? undefined : durationMs(interval),
  };
}
