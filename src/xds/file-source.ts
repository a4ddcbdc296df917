// A file of resources, which any number of subscriptions share: it is read when it is another one, and each is told.

import { messageOf } from '../common/errors/errors.js';
import { FileWatch, type FileWatchOptions, fileIdentity } from '../common/files/file-watch.js';
import { shownName } from '../common/text/shown.js';
import { StepQueue } from '../common/time/step-queue.js';
import { getLogger } from '../log/logger.js';
import type { StatsStore } from '../stats/store.js';
import type { RefusedResource, ResourceType } from './resource.js';
import { type ReadFile, ResourceFileError, type ResourceReader } from './resource-reader.js';
import { ResourceTtls } from './resource-ttls.js';
import {
  type Rejection,
  type ResourceNames,
  type Subscription,
  type SubscriptionRequest,
  stepsOf,
  wants,
  wantsAll,
} from './subscription.js';
import { SubscriptionStats } from './subscription-stats.js';

const logger = getLogger('config');

export interface FileSourceOptions {
  readonly path: string;
  /** When the file is looked at, beyond when it is another one, or changed. */
  readonly watch: FileWatchOptions;
  readonly type: ResourceType;
  readonly reader: ResourceReader;
  readonly store: StatsStore;
  /** What should not happen, and was caught. */
  readonly failed: (what: string, error: unknown) => void;
}

/** A subscription to it. */
interface Subscriber {
  readonly request: SubscriptionRequest;
  readonly stats: SubscriptionStats;
  names: ResourceNames;
  /** It will be told what there is. */
  isDue: boolean;
  /** It has been told something: that there is nothing is said only to those that have nothing. */
  isTold: boolean;
}

/** How long after a file that is there could not be read, for want of descriptors or threads, it is tried again. */
const RETRY_MS = 2000;

export class FileSource {
  readonly #options: FileSourceOptions;
  readonly #subscribers = new Set<Subscriber>();
  readonly #watch: FileWatch;
  readonly #ttls = new ResourceTtls((names) => this.#expire(names));
  /** Subscribers are told what there is. */
  readonly #delivery = new StepQueue();
  /** The last one that could be read. */
  #content: ReadFile | undefined;
  /** Why the latest one could not. */
  #error: ResourceFileError | undefined;
  #isReading = false;
  /** It has changed while it was read. */
  #isStale = false;
  #isClosed = false;
  #retry: NodeJS.Timeout | undefined;

  constructor(options: FileSourceOptions) {
    this.#options = options;
    const { path, watch } = options;
    this.#watch = new FileWatch(
      path,
      fileIdentity(path),
      {
        changed: () => this.#read(),
        failed: (message) => logger.error(`changes of ${path} may be noticed late: ${message}`),
      },
      watch,
    );
    setImmediate(() => this.#read());
  }

  get isUnused(): boolean {
    return this.#subscribers.size === 0;
  }

  subscribe(request: SubscriptionRequest): Subscription {
    const stats = new SubscriptionStats(this.#options.store, request.statPrefix, request.type);
    const subscriber: Subscriber = { request, stats, names: request.names, isDue: false, isTold: false };
    this.#subscribers.add(subscriber);
    this.#tellSoon(subscriber);
    return {
      setNames: (names) => {
        subscriber.names = names;
        this.#tellSoon(subscriber);
      },
      close: () => {
        if (this.#subscribers.delete(subscriber)) stats.close();
      },
    };
  }

  close(): void {
    this.#isClosed = true;
    this.#delivery.close();
    clearTimeout(this.#retry);
    this.#watch.close();
    this.#ttls.close();
    this.#options.reader.close();
  }

  #read(): void {
    if (this.#isClosed) return;
    this.#isStale = this.#isReading || this.#delivery.isBusy;
    if (this.#isStale) return;
    this.#isReading = true;
    clearTimeout(this.#retry);
    const { reader, type, path, failed } = this.#options;
    Promise.resolve()
      .then(() => reader.readFile(type, path))
      .catch((error: unknown) => {
        if (error instanceof ResourceFileError) return error;
        throw error;
      })
      .then(
        (content) => this.#take(content),
        (error: unknown) => {
          if (this.#isClosed) return;
          const message = `${path}: it was not read: ${messageOf(error)}`;
          if (message !== this.#error?.message) failed(`${path} was not read`, error);
          this.#take(new ResourceFileError(message, 'unreadable'));
        },
      );
  }

  #take(content: ReadFile | ResourceFileError): void {
    this.#isReading = false;
    if (this.#isClosed) return;
    if (content instanceof ResourceFileError) {
      const { message } = content;
      const isUnreadable = content.fault === 'unreadable';
      const isTold = isUnreadable && message === this.#error?.message;
      this.#error = content;
      if (!isTold) logger[isUnreadable ? 'error' : 'warning'](`no resources were taken from a file: ${message}`);
      // One that is not there is told of when it comes.
      if (isUnreadable && fileIdentity(this.#options.path) !== '') {
        this.#retry = setTimeout(() => this.#read(), RETRY_MS).unref();
      }
    } else {
      this.#content = content;
      this.#error = undefined;
      const { resources, ttlMs } = content;
      this.#ttls.update(
        resources.map(({ name }) => [name, ttlMs.get(name)] as const),
        (name) => ttlMs.has(name),
      );
    }
    void this.#run(this.#tellAll()).then(() => {
      if (this.#isStale) this.#read();
    });
  }

  /** Does it behind what is under way. */
  async #run(steps: Generator<void, void>): Promise<void> {
    try {
      await this.#delivery.run(steps);
    } catch (error) {
      this.#options.failed(`what ${this.#options.path} says is not used`, error);
    }
  }

  *#tellAll(): Generator<void, void> {
    for (const subscriber of [...this.#subscribers]) {
      if (this.#subscribers.has(subscriber)) yield* this.#tell(subscriber);
    }
  }

  *#tell(subscriber: Subscriber): Generator<void, void> {
    if (this.#error === undefined) yield* this.#deliver(subscriber, this.#content!);
    else yield* this.#refuse(subscriber, this.#error);
  }

  /** What has lived for its time is gone until the file is another one. */
  #expire(names: readonly string[]): void {
    const content = this.#content!;
    const gone = new Set(names);
    this.#content = { ...content, resources: content.resources.filter(({ name }) => !gone.has(name)) };
    void this.#run(this.#tellGone(content.version, names));
  }

  *#tellGone(version: string, names: readonly string[]): Generator<void, void> {
    for (const subscriber of [...this.#subscribers]) {
      const { request, names: wanted } = subscriber;
      const removed = names.filter((name) => wants(wanted, name));
      if (removed.length === 0 || !this.#subscribers.has(subscriber)) continue;
      try {
        yield* stepsOf(request.watcher.update({ version, isComplete: false, resources: [], refused: [], removed }));
      } catch (error) {
        this.#options.failed(`an update of ${request.statPrefix} failed`, error);
      }
    }
  }

  /** Whoever comes later, or asks for other names, gets what was read last; while it is read there will be something newer. */
  #tellSoon(subscriber: Subscriber): void {
    if (subscriber.isDue || (this.#content ?? this.#error) === undefined) return;
    subscriber.isDue = true;
    setImmediate(() => {
      subscriber.isDue = false;
      if (this.#isReading || !this.#subscribers.has(subscriber)) return;
      void this.#run(this.#tellLatest(subscriber));
    });
  }

  *#tellLatest(subscriber: Subscriber): Generator<void, void> {
    if (this.#content !== undefined) yield* this.#deliver(subscriber, this.#content);
    else yield* this.#refuse(subscriber, this.#error!);
  }

  /** What came before stays in use; whoever has nothing yet goes on without. */
  *#refuse(subscriber: Subscriber, error: ResourceFileError): Generator<void, void> {
    const { request, stats } = subscriber;
    stats.attempt();
    // As in Envoy: where no message can be read, none is rejected.
    if (error.fault === 'refused') stats.rejected();
    else stats.failure();
    if (subscriber.isTold) return;
    // It came while the bad version was read: what came before is in use.
    if (this.#content !== undefined) return yield* this.#deliver(subscriber, this.#content);
    subscriber.isTold = true;
    try {
      request.watcher.fetchTimedOut();
    } catch (failure) {
      this.#options.failed(`what waited for ${request.statPrefix} cannot go on`, failure);
    }
  }

  *#deliver(subscriber: Subscriber, { version, resources, refused }: ReadFile): Generator<void, void> {
    const { request, stats, names } = subscriber;
    subscriber.isTold = true;
    stats.attempt();
    const began = performance.now();
    const isWanted = ({ name }: { readonly name: string }) => name === '' || wants(names, name);
    const bad = refused.filter(isWanted);
    let rejections: readonly Rejection[];
    try {
      // Who mistypes one resource has perhaps mistyped, or lost, what else is missing: as in Envoy nothing goes by such a file.
      const isComplete = refused.length === 0 || !wantsAll(names);
      const update = { version, isComplete, resources: resources.filter(isWanted), refused: bad, removed: [] };
      rejections = yield* stepsOf(request.watcher.update(update));
    } catch (error) {
      this.#options.failed(`an update of ${request.statPrefix} failed`, error);
      stats.rejected();
      return;
    }
    if (!this.#subscribers.has(subscriber)) return;
    const wrong = [...bad, ...rejections];
    if (wrong.length === 0) stats.success(version, performance.now() - began);
    else {
      stats.rejected();
      logger.warning(`resources of ${this.#options.path} were rejected:\n${describe(wrong)}`);
    }
  }
}

function describe(wrong: readonly (Rejection | RefusedResource)[]): string {
  return wrong.map(({ name, details }) => (name === '' ? details : `${shownName(name)}: ${details}`)).join('\n');
}
