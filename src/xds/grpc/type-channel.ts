// One resource type on a stream: passes responses through the reader to the watches, and their results to the protocol, which
// answers.

import { messageOf } from '../../common/errors/errors.js';
import { runSync } from '../../common/time/next-turn.js';
import { StepQueue } from '../../common/time/step-queue.js';
import { BREAKS_A_LINE, breaksLine } from '../../config/schema/line-rules.js';
import { rejectionText } from '../rejection-text.js';
import { type Resource, type ResourceType, removedNames } from '../resource.js';
import type { ReadResources, ResourceReader } from '../resource-reader.js';
import { ResourceTtls } from '../resource-ttls.js';
import {
  includesAll,
  type Rejection,
  type ResourceNames,
  type StepwiseUpdate,
  type SubscriptionRequest,
} from '../subscription.js';
import type { GrpcSourcesContext } from './grpc-sources-context.js';
import { KnownResources } from './known-resources.js';
import { hasBody, type Response } from './protocols/discovery-messages.js';
import type { Protocol, ResourceChanges } from './protocols/protocol.js';
import { typeUrlOf } from './services.js';
import { Watch } from './watch.js';
import { Watches } from './watches.js';

export class TypeChannel {
  readonly #type: ResourceType;
  readonly #protocol: Protocol;
  readonly #context: GrpcSourcesContext;
  readonly #handled: (maxMs: number) => Promise<void>;
  readonly #reader: ResourceReader;
  readonly #watches = new Watches();
  readonly #known: KnownResources;
  readonly #ttls: ResourceTtls;
  /** Version of the last response. */
  #version = '';
  /** Subscriptions have changed: some known resources may no longer be subscribed. */
  #mayForget = false;
  #isClosed = false;
  /** Runs the updates. Subscriptions that change meanwhile take effect after them. */
  readonly #updates = new StepQueue();

  /** `handled` resolves when everything that has arrived on the stream is handled, or after the given time. */
  constructor(
    type: ResourceType,
    protocol: Protocol,
    context: GrpcSourcesContext,
    handled: (maxMs: number) => Promise<void>,
  ) {
    this.#type = type;
    this.#protocol = protocol;
    this.#context = context;
    this.#handled = handled;
    this.#reader = context.createReader();
    this.#known = new KnownResources(type);
    this.#ttls = new ResourceTtls(
      (names) => this.#expire(names),
      () => handled(MAX_HANDLING_MS),
    );
  }

  add(request: SubscriptionRequest): Watch {
    const watch = new Watch(request, this.#context, this.#handled, this.#protocol.countsRefusals);
    this.#watches.add(watch);
    return watch;
  }

  /** Returns false when the watch has been removed. */
  setNames(watch: Watch, names: ResourceNames): boolean {
    return this.#watches.setNames(watch, names);
  }

  /** Returns false when it has been removed already. */
  remove(watch: Watch): boolean {
    return this.#watches.remove(watch);
  }

  /** Called when a new stream is open. Its server knows no earlier subscriptions. */
  opened(): void {
    this.#protocol.opened();
    this.#protocol.subscribe(this.#watches.subscribed);
    this.#forgetUnsubscribed();
  }

  /** Holds ACKs back, or releases them. */
  holdAnswers(areHeld: boolean): void {
    this.#protocol.holdsAnswers = areHeld;
  }

  /** Whether a request is pending. */
  get isDue(): boolean {
    return this.#protocol.isDue;
  }

  /**
   * Returns the next request, encoded. Resources that it unsubscribes are forgotten now: the server sends them again after a new
   * subscription.
   */
  request(node: Uint8Array | undefined): Uint8Array {
    const request = this.#protocol.request(node, this.#known);
    this.#forgetUnsubscribed();
    return request;
  }

  /** An update is being applied. Subscription changes that it causes are sent together afterwards. */
  get isApplying(): boolean {
    return this.#updates.isBusy;
  }

  /** After subscription changes: delivers known resources to new subscriptions. A no-op while an update is applied. */
  flush(): void {
    if (this.isApplying || !this.#watches.index()) return;
    this.#mayForget = true;
    this.#protocol.subscribe(this.#watches.subscribed);
    for (const watch of this.#watches) this.#deliverKnown(watch);
  }

  /** Applies a response, and answers it if its stream still exists. */
  async handle(response: Response, isCurrent: () => boolean): Promise<void> {
    const contradiction = lineEndIn(response) ?? this.#protocol.contradictionIn(response);
    if (contradiction !== undefined) return this.refuse(response, contradiction, isCurrent());
    const read = await this.#read(response);
    if (this.#isClosed) return;
    if (typeof read === 'string') return this.refuse(response, read, isCurrent());
    const changes = this.#protocol.changes(response, read, this.#known, isCurrent());
    this.flush();
    const isEmpty = isHeartbeat(response) && changes.removed.length === 0;
    const rejections = isEmpty ? [] : await this.#updates.run(this.#apply(response.version, changes));
    if (rejections === undefined) return;
    const hasTtls = read.ttlMs.size > 0 || response.resources.some(({ ttlMs }) => ttlMs !== undefined);
    if (hasTtls || !this.#ttls.isEmpty) {
      this.#ttls.update(ttlsOf(response, read), (name) => this.#known.last(name) !== undefined);
    }
    const wrong = [...read.refused, ...rejections];
    this.#protocol.answer(response, wrong.length === 0 ? undefined : rejectionText(wrong), isCurrent());
  }

  /** Refuses the whole response. */
  refuse(response: Response, details: string, isCurrent: boolean): void {
    for (const watch of this.#watches) watch.refuse(details);
    this.#protocol.answer(response, details, isCurrent);
  }

  /** Called when the stream ended or could not be opened. */
  connectionFailed(): void {
    for (const watch of this.#watches) watch.connectionFailed();
  }

  close(): void {
    this.#isClosed = true;
    this.#updates.close();
    this.#watches.close();
    this.#ttls.close();
    this.#reader.close();
  }

  /** Returns the error text if nothing can be read. */
  async #read({ resources, version }: Response): Promise<ReadResources | string> {
    const encoded = resources.filter(hasBody);
    if (encoded.length === 0) return NOTHING_READ;
    try {
      return await this.#reader.read(this.#type, version, encoded);
    } catch (error) {
      if (!this.#isClosed) this.#context.failed(`resources of type ${typeUrlOf(this.#type)} cannot be read`, error);
      return `internal error: ${messageOf(error)}`;
    }
  }

  *#apply(version: string, changes: ResourceChanges): StepwiseUpdate {
    this.#version = version;
    const rejections = yield* this.#deliver(changes, (watch) => this.#protocol.isComplete(includesAll(watch.names)));
    if (changes.resources.length > MANY_RESOURCES) yield;
    yield* this.#record(changes, new Set(rejections.map(({ name }) => name)));
    return rejections;
  }

  /** Delivers to each watcher its part, WATCHES_PER_STEP watchers per step. */
  *#deliver(changes: ResourceChanges, isComplete: (watch: Watch) => boolean): StepwiseUpdate {
    const rejections: Rejection[] = [];
    let delivered = 0;
    for (const [watch, part] of this.#watches.partsOf(changes, isComplete)) {
      // A previous watcher may have removed it.
      if (!this.#watches.has(watch)) continue;
      const update = { version: this.#version, isComplete: isComplete(watch), ...part };
      for (const rejection of yield* watch.update(update)) rejections.push(rejection);
      if (++delivered % WATCHES_PER_STEP === 0) yield;
    }
    return rejections;
  }

  /** Records the results for subscribed resources, MANY_RESOURCES per step. */
  *#record({ resources, refused, removed }: ResourceChanges, rejected: ReadonlySet<string>): Generator<void, void> {
    const known = this.#known;
    // An unsubscribed resource may be subscribed again before the server has been notified: see request().
    const isKept = (each: Named) => this.#isSubscribed(each) || known.last(each.name) !== undefined;
    let done = 0;
    for (const { name } of refused) {
      if (name !== '' && isKept({ name, aliases: [] })) known.refuse(name);
      if (++done % MANY_RESOURCES === 0) yield;
    }
    for (const resource of resources) {
      if (isKept(resource)) {
        if (rejected.has(resource.name)) known.reject(resource);
        else known.accept(resource);
      }
      if (++done % MANY_RESOURCES === 0) yield;
    }
    known.isAll = this.#protocol.isWildcard;
    const isComplete = this.#protocol.isComplete(known.isAll);
    known.forget(removedNames({ isComplete, resources, refused, removed }, known.names));
  }

  #forgetUnsubscribed(): void {
    if (!this.#mayForget || this.#protocol.isWildcard) return;
    this.#mayForget = false;
    const known = this.#known;
    known.isAll = false;
    known.forget([...known.names].filter((name) => !this.#isSubscribed(known.last(name) ?? { name, aliases: [] })));
  }

  #isSubscribed(resource: Named): boolean {
    return this.#protocol.isWildcard || this.#watches.isSubscribedByName(resource);
  }

  /** Delivers to a watch the known resources among its newly subscribed names. */
  #deliverKnown(watch: Watch): void {
    const { fresh } = watch;
    if (fresh !== '*' && fresh.size === 0) return;
    watch.fresh = NO_NAMES;
    const isAll = includesAll(fresh);
    if (isAll && !this.#known.isAll) return;
    const resources = fresh === '*' || isAll ? [...this.#known.inUse] : this.#known.named(fresh);
    if (!isAll && resources.length === 0) return;
    const isComplete = isAll && this.#protocol.isComplete(isAll);
    runSync(watch.update({ version: this.#version, isComplete, resources, refused: [], removed: [] }));
  }

  #expire(names: readonly string[]): void {
    this.#known.forget(names);
    const steps = this.#deliver({ resources: [], refused: [], removed: names }, () => false);
    this.#updates
      .run(steps)
      .catch((error: unknown) => this.#context.failed('resources that have expired are still used', error));
  }
}

type Named = Pick<Resource, 'name' | 'aliases'>;

/** Maximum wait for the handling of received responses before resources expire. */
const MAX_HANDLING_MS = 5000;

/** Watches per step: a few milliseconds' work. */
const WATCHES_PER_STEP = 128;

/** Resources recorded per step. More are recorded in a turn of their own. */
const MANY_RESOURCES = 4096;

const NO_NAMES: ReadonlySet<string> = new Set();
const NOTHING_READ: ReadResources = { resources: [], refused: [], ttlMs: new Map() };

/** Returns whether the response contains only heartbeats. */
function isHeartbeat({ resources }: Response): boolean {
  return resources.length > 0 && !resources.some(hasBody);
}

function ttlsOf({ resources }: Response, read: ReadResources): (readonly [string, number | undefined])[] {
  const sent = new Map(resources.map(({ name, ttlMs }) => [name, ttlMs] as const));
  return [
    ...read.resources.map(({ name }) => [name, read.ttlMs.get(name) ?? sent.get(name)] as const),
    ...resources.filter((each) => !hasBody(each)).map(({ name, ttlMs }) => [name, ttlMs] as const),
  ];
}

/**
 * Returns an error if the version or the identifier contains a line end, because they become part of lines. The same rule holds
 * for files.
 */
function lineEndIn({ identifier = '', version }: Response): string | undefined {
  if (breaksLine(version)) return `the version of the response: ${BREAKS_A_LINE}`;
  return breaksLine(identifier) ? `control_plane.identifier: ${BREAKS_A_LINE}` : undefined;
}
