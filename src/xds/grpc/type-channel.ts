// One kind of resources on a stream: passes responses through the reader to the watches, and what these make of them to the
// protocol, which answers.

import { messageOf } from '../../common/errors/errors.js';
import { runSync } from '../../common/time/next-turn.js';
import { StepQueue } from '../../common/time/step-queue.js';
import { ENDS_A_TEXT_LINE, endsLine } from '../../config/schema/line-rules.js';
import { namesGone, type Resource, type ResourceType } from '../resource.js';
import type { ReadResources, ResourceReader } from '../resource-reader.js';
import { ResourceTtls } from '../resource-ttls.js';
import {
  type Rejection,
  type ResourceNames,
  type StepwiseUpdate,
  type SubscriptionRequest,
  wantsAll,
} from '../subscription.js';
import type { GrpcSourcesContext } from './grpc-sources-context.js';
import { KnownResources } from './known-resources.js';
import { hasBody, type Response } from './protocols/discovery-messages.js';
import type { News, Protocol } from './protocols/protocol.js';
import { typeUrlOf } from './services.js';
import { rejectionText, Watch } from './watch.js';
import { Watches } from './watches.js';

export class TypeChannel {
  readonly #type: ResourceType;
  readonly #protocol: Protocol;
  readonly #context: GrpcSourcesContext;
  readonly #handled: (mostMs: number) => Promise<void>;
  readonly #reader: ResourceReader;
  readonly #watches = new Watches();
  readonly #known: KnownResources;
  readonly #ttls: ResourceTtls;
  /** Of the last response. */
  #version = '';
  /** Subscriptions have changed: something that is known may not be wanted any more. */
  #mayForget = false;
  #isClosed = false;
  /** Updates are applied: subscriptions that change meanwhile count behind them. */
  readonly #updates = new StepQueue();

  /** `handled` resolves when everything that has come on the stream is handled, or after so long. */
  constructor(
    type: ResourceType,
    protocol: Protocol,
    context: GrpcSourcesContext,
    handled: (mostMs: number) => Promise<void>,
  ) {
    this.#type = type;
    this.#protocol = protocol;
    this.#context = context;
    this.#handled = handled;
    this.#reader = context.createReader();
    this.#known = new KnownResources(type);
    this.#ttls = new ResourceTtls(
      (names) => this.#expire(names),
      () => handled(LONGEST_HANDLING_MS),
    );
  }

  add(request: SubscriptionRequest): Watch {
    const watch = new Watch(request, this.#context, this.#handled);
    this.#watches.add(watch);
    return watch;
  }

  /** False when the watch is gone already. */
  setNames(watch: Watch, names: ResourceNames): boolean {
    return this.#watches.setNames(watch, names);
  }

  /** False when it was gone already. */
  remove(watch: Watch): boolean {
    return this.#watches.remove(watch);
  }

  /** There is a new stream: its server knows nothing of what was wanted before. */
  opened(): void {
    this.#protocol.opened();
    this.#protocol.want(this.#watches.wanted);
    this.#forgetUnwanted();
  }

  /** Answers wait from now on, or go. */
  holdAnswers(areHeld: boolean): void {
    this.#protocol.holdsAnswers = areHeld;
  }

  /** Whether there is something to say. */
  get isDue(): boolean {
    return this.#protocol.isDue;
  }

  /** The next request, encoded. What it no longer asks for is forgotten then: whoever asks for it again is told anew. */
  request(node: Uint8Array | undefined): Uint8Array {
    const request = this.#protocol.request(node, this.#known);
    this.#forgetUnwanted();
    return request;
  }

  /** An update is being applied: what it makes watchers ask for is asked for together, when that is done. */
  get isApplying(): boolean {
    return this.#updates.isBusy;
  }

  /** If subscriptions have changed: tells those that are new what is known. Does nothing while an update is applied. */
  flush(): void {
    if (this.isApplying || !this.#watches.index()) return;
    this.#mayForget = true;
    this.#protocol.want(this.#watches.wanted);
    for (const watch of this.#watches) this.#tellKnown(watch);
  }

  /** Resolves when the response is applied, as far as it can be; it is answered if the stream that it came on is still there. */
  async handle(response: Response, isCurrent: () => boolean): Promise<void> {
    const contradiction = lineEndIn(response) ?? this.#protocol.contradictionIn(response);
    if (contradiction !== undefined) return this.refuse(response, contradiction, isCurrent());
    const read = await this.#read(response);
    if (this.#isClosed) return;
    if (typeof read === 'string') return this.refuse(response, read, isCurrent());
    const news = this.#protocol.news(response, read, this.#known, isCurrent());
    this.flush();
    const isEmpty = isHeartbeat(response) && news.removed.length === 0;
    const rejections = isEmpty ? [] : await this.#updates.run(this.#apply(response.version, news));
    if (rejections === undefined) return;
    const hasTtls = read.ttlMs.size > 0 || response.resources.some(({ ttlMs }) => ttlMs !== undefined);
    if (hasTtls || !this.#ttls.isEmpty) {
      this.#ttls.update(ttlsOf(response, read), (name) => this.#known.last(name) !== undefined);
    }
    const wrong = [...read.refused, ...rejections];
    this.#protocol.answer(response, wrong.length === 0 ? undefined : rejectionText(wrong), isCurrent());
  }

  /** The response is no use at all. */
  refuse(response: Response, details: string, isCurrent: boolean): void {
    for (const watch of this.#watches) watch.refuse(details);
    this.#protocol.answer(response, details, isCurrent);
  }

  /** There is no stream. */
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

  /** A text when there is nothing to be read at all. */
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

  *#apply(version: string, news: News): StepwiseUpdate {
    this.#version = version;
    const rejections = yield* this.#tell(news, (watch) => this.#protocol.isComplete(wantsAll(watch.names)));
    if (news.resources.length > MANY_RESOURCES) yield;
    this.#note(news, new Set(rejections.map(({ name }) => name)));
    return rejections;
  }

  /** Tells each watcher its part, some of them a step. */
  *#tell(news: News, isComplete: (watch: Watch) => boolean): StepwiseUpdate {
    const rejections: Rejection[] = [];
    let told = 0;
    for (const [watch, part] of this.#watches.partsOf(news, isComplete)) {
      // The watchers before it may have ended it.
      if (!this.#watches.has(watch)) continue;
      const update = { version: this.#version, isComplete: isComplete(watch), ...part };
      for (const rejection of yield* watch.update(update)) rejections.push(rejection);
      if (++told % WATCHES_PER_STEP === 0) yield;
    }
    return rejections;
  }

  /** Keeps what watchers have made of it, as far as it is wanted. */
  #note({ resources, refused, removed }: News, rejected: ReadonlySet<string>): void {
    const known = this.#known;
    // What is not wanted any more may be wanted again before the server has been told: see request().
    const isKept = (each: Named) => this.#isWanted(each) || known.last(each.name) !== undefined;
    for (const { name } of refused) if (name !== '' && isKept({ name, aliases: [] })) known.refuse(name);
    for (const resource of resources.filter(isKept)) {
      if (rejected.has(resource.name)) known.reject(resource);
      else known.accept(resource);
    }
    known.isAll = this.#protocol.isWildcard;
    const isComplete = this.#protocol.isComplete(known.isAll);
    known.forget(namesGone({ isComplete, resources, refused, removed }, known.names));
  }

  #forgetUnwanted(): void {
    if (!this.#mayForget || this.#protocol.isWildcard) return;
    this.#mayForget = false;
    const known = this.#known;
    known.isAll = false;
    known.forget([...known.names].filter((name) => !this.#isWanted(known.last(name) ?? { name, aliases: [] })));
  }

  #isWanted(resource: Named): boolean {
    return this.#protocol.isWildcard || this.#watches.wantByName(resource);
  }

  /** What it has begun to want, and the server has said already. */
  #tellKnown(watch: Watch): void {
    const { fresh } = watch;
    if (fresh !== '*' && fresh.size === 0) return;
    watch.fresh = NO_NAMES;
    const isAll = wantsAll(fresh);
    if (isAll && !this.#known.isAll) return;
    const resources = fresh === '*' || isAll ? [...this.#known.inUse] : this.#known.named(fresh);
    if (!isAll && resources.length === 0) return;
    const isComplete = isAll && this.#protocol.isComplete(isAll);
    runSync(watch.update({ version: this.#version, isComplete, resources, refused: [], removed: [] }));
  }

  #expire(names: readonly string[]): void {
    this.#known.forget(names);
    const steps = this.#tell({ resources: [], refused: [], removed: names }, () => false);
    this.#updates
      .run(steps)
      .catch((error: unknown) => this.#context.failed('resources that have expired are still used', error));
  }
}

type Named = Pick<Resource, 'name' | 'aliases'>;

/** Of what has come when the time to live of something is over. */
const LONGEST_HANDLING_MS = 5000;

/** Watches that are told their part without a turn for others: a few milliseconds' work. */
const WATCHES_PER_STEP = 128;

/** What is noted of more takes a turn of its own. */
const MANY_RESOURCES = 4096;

const NO_NAMES: ReadonlySet<string> = new Set();
const NOTHING_READ: ReadResources = { resources: [], refused: [], ttlMs: new Map() };

/** It says of some resources that they live on, and nothing else. */
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

/** What a response says of itself becomes part of lines; files have the same rule. */
function lineEndIn({ identifier = '', version }: Response): string | undefined {
  if (endsLine(version)) return `the version of the response: ${ENDS_A_TEXT_LINE}`;
  return endsLine(identifier) ? `control_plane.identifier: ${ENDS_A_TEXT_LINE}` : undefined;
}
