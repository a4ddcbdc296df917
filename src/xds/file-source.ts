// A file of resources that any number of subscriptions share. It is read when it is replaced or changed, and each subscriber is
// notified.

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
  includesAll,
  includesName,
  type Rejection,
  type ResourceNames,
  type Subscription,
  type SubscriptionRequest,
  stepsOf,
} from './subscription.js';
import { SubscriptionStats } from './subscription-stats.js';

const logger = getLogger('config');

export interface FileSourceOptions {
  readonly path: string;
  /** Additional conditions for checking the file, besides its replacement or change. */
  readonly watch: FileWatchOptions;
  readonly type: ResourceType;
  readonly reader: ResourceReader;
  readonly store: StatsStore;
  /** Reports an unexpected exception that was caught. */
  readonly failed: (what: string, error: unknown) => void;
}

/** A subscription to the file. */
interface Subscriber {
  readonly request: SubscriptionRequest;
  readonly stats: SubscriptionStats;
  names: ResourceNames;
  /** A delivery is scheduled. */
  isDue: boolean;
  /** It has been notified once: fetchTimedOut() is only for subscribers that have got nothing. */
  isNotified: boolean;
}

/** Retry delay after an existing file could not be read, for example when descriptors or threads were exhausted. */
const RETRY_MS = 2000;

export class FileSource {
  readonly #options: FileSourceOptions;
  readonly #subscribers = new Set<Subscriber>();
  readonly #watch: FileWatch;
  readonly #ttls = new ResourceTtls((names) => this.#expire(names));
  /** Updates are delivered to the subscribers one after the other. */
  readonly #delivery = new StepQueue();
  /** The last readable content. */
  #content: ReadFile | undefined;
  /** Why the latest content could not be read. */
  #error: ResourceFileError | undefined;
  #isReading = false;
  /** The file has changed while it was read. */
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
        failed: (message) => logger.error(`changes of ${path} may be detected late: ${message}`),
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
    const subscriber: Subscriber = { request, stats, names: request.names, isDue: false, isNotified: false };
    this.#subscribers.add(subscriber);
    this.#scheduleDelivery(subscriber);
    return {
      setNames: (names) => {
        subscriber.names = names;
        this.#scheduleDelivery(subscriber);
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
      const isNotified = isUnreadable && message === this.#error?.message;
      this.#error = content;
      if (!isNotified) logger[isUnreadable ? 'error' : 'warning'](`no resources were taken from a file: ${message}`);
      // The watch reports when a missing file is created.
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
    void this.#run(this.#deliverToAll()).then(() => {
      if (this.#isStale) this.#read();
    });
  }

  /** Runs the steps after those in progress. */
  async #run(steps: Generator<void, void>): Promise<void> {
    try {
      await this.#delivery.run(steps);
    } catch (error) {
      this.#options.failed(`the contents of ${this.#options.path} are not used`, error);
    }
  }

  *#deliverToAll(): Generator<void, void> {
    for (const subscriber of [...this.#subscribers]) {
      if (this.#subscribers.has(subscriber)) yield* this.#deliverOutcome(subscriber);
    }
  }

  *#deliverOutcome(subscriber: Subscriber): Generator<void, void> {
    if (this.#error === undefined) yield* this.#deliver(subscriber, this.#content!);
    else yield* this.#refuse(subscriber, this.#error);
  }

  /** Removes expired resources until the file changes. */
  #expire(names: readonly string[]): void {
    const content = this.#content!;
    const gone = new Set(names);
    this.#content = { ...content, resources: content.resources.filter(({ name }) => !gone.has(name)) };
    void this.#run(this.#deliverRemoved(content.version, names));
  }

  *#deliverRemoved(version: string, names: readonly string[]): Generator<void, void> {
    for (const subscriber of [...this.#subscribers]) {
      const { request, names: wanted } = subscriber;
      const removed = names.filter((name) => includesName(wanted, name));
      if (removed.length === 0 || !this.#subscribers.has(subscriber)) continue;
      try {
        yield* stepsOf(request.watcher.update({ version, isComplete: false, resources: [], refused: [], removed }));
      } catch (error) {
        this.#options.failed(`an update of ${request.statPrefix} failed`, error);
      }
    }
  }

  /**
   * Schedules delivery of the last content to a subscriber that is new or has other names. During a read nothing is delivered,
   * since newer content follows.
   */
  #scheduleDelivery(subscriber: Subscriber): void {
    if (subscriber.isDue || (this.#content ?? this.#error) === undefined) return;
    subscriber.isDue = true;
    setImmediate(() => {
      subscriber.isDue = false;
      if (this.#isReading || !this.#subscribers.has(subscriber)) return;
      void this.#run(this.#deliverLatest(subscriber));
    });
  }

  *#deliverLatest(subscriber: Subscriber): Generator<void, void> {
    if (this.#content !== undefined) yield* this.#deliver(subscriber, this.#content);
    else yield* this.#refuse(subscriber, this.#error!);
  }

  /** Refuses the file for a subscriber. The previous content stays in use; a subscriber without content proceeds without it. */
  *#refuse(subscriber: Subscriber, error: ResourceFileError): Generator<void, void> {
    const { request, stats } = subscriber;
    stats.attempt();
    // As in Envoy: where no message can be read, none is rejected.
    if (error.fault === 'refused') stats.rejected();
    else stats.failure();
    if (subscriber.isNotified) return;
    // The subscriber was added while the bad version was read: the previous content is in use.
    if (this.#content !== undefined) return yield* this.#deliver(subscriber, this.#content);
    subscriber.isNotified = true;
    try {
      request.watcher.fetchTimedOut();
    } catch (failure) {
      this.#options.failed(`the subscriber of ${request.statPrefix} cannot proceed`, failure);
    }
  }

  /** As in Envoy, a file that has other names only is mistaken. What the subscriber has stays in use. */
  #rejectOthers(subscriber: Subscriber, { resources, refused }: ReadFile): void {
    const { request, stats, names } = subscriber;
    stats.rejected();
    const wanted = typeof names === 'string' ? '' : [...names].map(shownName).join("', '");
    const found = shownName((resources[0] ?? refused[0])!.name);
    logger.warning(`${this.#options.path}: it has no resource '${wanted}', but '${found}'`);
    if (subscriber.isNotified) return;
    subscriber.isNotified = true;
    try {
      request.watcher.fetchTimedOut();
    } catch (failure) {
      this.#options.failed(`the subscriber of ${request.statPrefix} cannot proceed`, failure);
    }
  }

  *#deliver(subscriber: Subscriber, content: ReadFile): Generator<void, void> {
    const { request, stats, names } = subscriber;
    const { version, resources, refused } = content;
    stats.attempt();
    if (hasOnlyOthers(content, names)) return this.#rejectOthers(subscriber, content);
    subscriber.isNotified = true;
    const began = performance.now();
    const isWanted = ({ name }: { readonly name: string }) => name === '' || includesName(names, name);
    const bad = refused.filter(isWanted);
    let rejections: readonly Rejection[];
    try {
      // One mistyped resource suggests that missing ones are mistakes, too: as in Envoy such a file removes nothing.
      const isComplete = refused.length === 0 || !includesAll(names);
      const update = { version, isComplete, resources: resources.filter(isWanted), refused: bad, removed: [] };
      rejections = yield* stepsOf(request.watcher.update(update));
    } catch (error) {
      this.#options.failed(`an update of ${request.statPrefix} failed`, error);
      stats.rejected();
      return;
    }
    if (!this.#subscribers.has(subscriber)) return;
    const rejected = [...bad, ...rejections];
    if (rejected.length === 0) stats.success(version, performance.now() - began);
    else {
      stats.rejected();
      logger.warning(`resources of ${this.#options.path} were rejected:\n${describe(rejected)}`);
    }
  }
}

/** Returns whether a file has resources, but none that a subscriber to single names wants. */
function hasOnlyOthers({ resources, refused }: ReadFile, names: ResourceNames): boolean {
  if (names === '*' || includesAll(names) || names.size === 0) return false;
  const all = [...resources, ...refused];
  return all.length > 0 && all.every(({ name }) => name !== '' && !includesName(names, name));
}

function describe(rejected: readonly (Rejection | RefusedResource)[]): string {
  return rejected.map(({ name, details }) => (name === '' ? details : `${shownName(name)}: ${details}`)).join('\n');
}
