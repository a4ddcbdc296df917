// All subscriptions to one kind of resources on a stream: what they want together, and which of them is told what.

import { messageOf } from '../../common/errors/errors.js';
import { hidesNames, type Resource, type ResourceType } from '../resource.js';
import type { EncodedResource, ReadResources, ResourceReader } from '../resource-reader.js';
import { ResourceTtls } from '../resource-ttls.js';
import { type Rejection, type ResourceNames, type SubscriptionRequest, wantsAll } from '../subscription.js';
import type { GrpcSourcesHost } from './host.js';
import { Delta } from './protocols/delta.js';
import type { Response, SentResource } from './protocols/discovery-messages.js';
import type { News, Protocol, VersionsInUse, Wanted } from './protocols/protocol.js';
import { StateOfTheWorld } from './protocols/state-of-the-world.js';
import { typeUrlOf } from './services.js';
import { rejectionText, Watch } from './watch.js';
import { Watches } from './watches.js';

export class TypeChannel {
  readonly #protocol: Protocol;
  readonly #type: ResourceType;
  readonly #isDelta: boolean;
  readonly #host: GrpcSourcesHost;
  readonly #reader: ResourceReader;
  readonly #handled: (mostMs: number) => Promise<void>;
  readonly #watches = new Watches();
  /** Resources in use by name, for subscriptions that come later: the server says nothing twice. */
  readonly #known = new Map<string, Resource>();
  /** Refused by its watchers, which may come to use it: it lives no longer than if they did. */
  readonly #waiting = new Map<string, Resource>();
  /** With delta, of all that there is: what is not in use in any version. A new server is not told of it. */
  readonly #unused = new Set<string>();
  readonly #ttls: ResourceTtls;
  /** The server tells everything. With state of the world it goes on to when nobody wants anything: that names nothing either. */
  #asksAll = false;
  /** Of the last response. */
  #version = '';
  /** What is known is everything that there is. */
  #knowsAll = false;
  /** With delta: the first response of a stream says what there is beside the versions in use. */
  #isFirstDue = false;
  /** Something that is known may not be wanted any more. */
  #mayForget = false;
  #isClosed = false;

  /** `handled` resolves when everything that has come on the stream is handled, or after so long. */
  constructor(type: ResourceType, isDelta: boolean, host: GrpcSourcesHost, handled: (mostMs: number) => Promise<void>) {
    this.#type = type;
    this.#isDelta = isDelta;
    this.#host = host;
    this.#handled = handled;
    this.#ttls = new ResourceTtls(
      (names) => this.#expire(names),
      () => handled(LONGEST_HANDLING_MS),
    );
    this.#reader = host.createReader();
    this.#protocol = isDelta ? new Delta(typeUrlOf(type)) : new StateOfTheWorld(typeUrlOf(type));
  }

  add(request: SubscriptionRequest): Watch {
    const watch = new Watch(request, this.#host, this.#handled);
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
    this.#ask(this.#watches.wanted);
    this.#forgetUnwanted();
    this.#protocol.opened();
    this.#isFirstDue = this.#isDelta;
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
    const request = this.#protocol.request(node, this.#versionsInUse());
    this.#forgetUnwanted();
    return request;
  }

  /** If subscriptions have changed: tells those that are new what is known. */
  flush(): void {
    if (!this.#watches.index()) return;
    this.#mayForget = true;
    const { names, isWildcard } = this.#watches.wanted;
    const goesOn = names.size === 0 && this.#asksAll && !this.#isDelta;
    this.#ask({ names, isWildcard: isWildcard || goesOn });
    for (const watch of this.#watches) this.#tellKnown(watch);
  }

  /** Resolves when the response is applied, as far as it can be; it is answered if the stream that it came on is still there. */
  async handle(response: Response, isCurrent: () => boolean): Promise<void> {
    const contradiction = this.#isDelta ? contradictionIn(response) : undefined;
    if (contradiction !== undefined) return this.refuse(response, contradiction, isCurrent());
    const read = await this.#read(response);
    if (this.#isClosed) return;
    if (typeof read === 'string') return this.refuse(response, read, isCurrent());
    const heartbeats = response.resources.filter((each) => !isBody(each)).map(({ name }) => name);
    const forgotten = isCurrent() ? this.#forgotten(response, read) : [];
    const rejections = this.#apply(response, read, heartbeats, forgotten);
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
    this.#watches.close();
    this.#ttls.close();
    this.#reader.close();
  }

  #ask(wanted: Wanted): void {
    this.#asksAll = wanted.isWildcard;
    this.#protocol.want(wanted);
  }

  /** A text when there is nothing to be read at all. */
  async #read({ resources, version }: Response): Promise<ReadResources | string> {
    const encoded = resources.filter(isBody);
    if (encoded.length === 0) return NOTHING_READ;
    try {
      return await this.#reader.read(this.#type, version, encoded);
    } catch (error) {
      if (!this.#isClosed) this.#host.failed(`resources of type ${typeUrlOf(this.#type)} cannot be read`, error);
      return `internal error: ${messageOf(error)}`;
    }
  }

  #apply(
    response: Response,
    read: ReadResources,
    heartbeats: readonly string[],
    forgotten: readonly string[],
  ): readonly Rejection[] {
    this.flush();
    const isHeartbeat = heartbeats.length > 0 && heartbeats.length === response.resources.length;
    const removed = [...response.removed, ...this.#absent(response), ...forgotten];
    let rejections: readonly Rejection[] = [];
    if (!isHeartbeat || removed.length > 0) {
      // Where what is not named is gone, heartbeats stand for their resources.
      const living = this.#isDelta
        ? []
        : heartbeats.flatMap((name) => this.#waiting.get(name) ?? this.#known.get(name) ?? []);
      const news = { resources: [...living, ...read.resources], refused: read.refused, removed };
      this.#version = response.version;
      rejections = this.#tell(news, (watch) => this.#isComplete(watch));
      this.#note(news, new Set(rejections.map(({ name }) => name)));
    }
    this.#ttls.update(ttlsOf(response, read), (name) => this.#known.has(name) || this.#waiting.has(name));
    return rejections;
  }

  /** What was refused before this stream, of a server that tells everything and does not tell it again. */
  #forgotten({ removed }: Response, { resources, refused }: ReadResources): string[] {
    if (!this.#isFirstDue) return [];
    this.#isFirstDue = false;
    if (!this.#asksAll || hidesNames(refused)) return [];
    const named = new Set([...removed, ...[...resources, ...refused].map(({ name }) => name)]);
    return [...this.#unused].filter((name) => !named.has(name));
  }

  /** Virtual hosts that were asked for and do not exist: servers may send them without a body, by any of their names. */
  #absent({ resources }: Response): string[] {
    if (!this.#isDelta || this.#type !== 'virtual-host') return [];
    const absent = resources.filter((each) => !isBody(each) && !this.#known.has(each.name));
    return absent.flatMap(({ name, aliases }) => [name, ...aliases]);
  }

  /** Tells each watcher its part. */
  #tell(news: News, isComplete: (watch: Watch) => boolean): Rejection[] {
    const rejections: Rejection[] = [];
    for (const [watch, part] of this.#watches.partsOf(news, isComplete)) {
      // The watchers before it may have ended it.
      if (!this.#watches.has(watch)) continue;
      rejections.push(...watch.update({ version: this.#version, isComplete: isComplete(watch), ...part }));
    }
    return rejections;
  }

  /** Keeps what is in use from now on. */
  #note({ resources, refused, removed }: News, rejected: ReadonlySet<string>): void {
    // What is not wanted any more may be wanted again before the server has been told: see request().
    const isKept = (each: Resource) => this.#isWanted(each) || this.#known.has(each.name);
    const used = resources.filter((each) => !rejected.has(each.name) && isKept(each));
    for (const { name } of [...resources, ...refused]) this.#waiting.delete(name);
    for (const resource of resources) if (rejected.has(resource.name)) this.#waiting.set(resource.name, resource);
    for (const resource of used) this.#known.set(resource.name, resource);
    for (const name of [...used.map((each) => each.name), ...removed]) this.#unused.delete(name);
    if (this.#isDelta && this.#asksAll) {
      const unused = [...refused.map((each) => each.name), ...rejected];
      for (const name of unused) if (name !== '' && !this.#known.has(name)) this.#unused.add(name);
    }
    this.#knowsAll = this.#asksAll;
    const isState = !this.#isDelta && (this.#knowsAll || this.#isState) && !hidesNames(refused);
    const there = new Set([...resources, ...refused].map(({ name }) => name));
    const all = [...this.#known.keys(), ...this.#waiting.keys()];
    this.#forget(isState ? all.filter((name) => !there.has(name)) : removed);
  }

  *#versionsInUse(): VersionsInUse {
    for (const { name, version } of this.#known.values()) yield [name, version];
  }

  #forgetUnwanted(): void {
    if (!this.#mayForget || this.#asksAll) return;
    this.#mayForget = false;
    this.#knowsAll = false;
    const all = [...this.#known.values(), ...this.#waiting.values()];
    this.#forget(all.filter((each) => !this.#isWanted(each)).map(({ name }) => name));
  }

  #forget(names: readonly string[]): void {
    for (const name of names) {
      this.#known.delete(name);
      this.#waiting.delete(name);
    }
  }

  /** What it has begun to want, and the server has said already. */
  #tellKnown(watch: Watch): void {
    const { fresh } = watch;
    if (fresh !== '*' && fresh.size === 0) return;
    watch.fresh = NO_NAMES;
    const isAll = wantsAll(fresh);
    if (isAll && !this.#knowsAll) return;
    const resources = fresh === '*' || isAll ? [...this.#known.values()] : this.#knownAs(fresh);
    if (!isAll && resources.length === 0) return;
    watch.update({ version: this.#version, isComplete: isAll && !this.#isDelta, resources, refused: [], removed: [] });
  }

  #knownAs(names: ReadonlySet<string>): Resource[] {
    if (this.#type !== 'virtual-host') return [...names].flatMap((name) => this.#known.get(name) ?? []);
    return [...this.#known.values()].filter(({ name, aliases }) => [name, ...aliases].some((each) => names.has(each)));
  }

  #expire(names: readonly string[]): void {
    this.#forget(names);
    this.#tell({ resources: [], refused: [], removed: names }, () => false);
  }

  #isWanted(resource: Resource): boolean {
    return this.#asksAll || this.#watches.wantByName(resource);
  }

  /** Responses say all that there is of what it wants. */
  #isComplete(watch: Watch): boolean {
    return !this.#isDelta && (wantsAll(watch.names) || this.#isState);
  }

  /** With state of the world, listeners and clusters that a response does not have are gone; others have not changed. */
  get #isState(): boolean {
    return this.#type === 'listener' || this.#type === 'cluster';
  }
}

/** Of what has come when the time to live of something is over. */
const LONGEST_HANDLING_MS = 5000;

const NO_NAMES: ReadonlySet<string> = new Set();
const NOTHING_READ: ReadResources = { resources: [], refused: [], ttlMs: new Map() };

/** What is said of a name twice, and differently: nobody knows which of the two is meant. Undefined where there is no such name. */
function contradictionIn({ removed, resources }: Response): string | undefined {
  const names = new Set<string>();
  for (const { name } of resources) {
    if (names.has(name)) return `duplicate name ${name} found among added/updated resources`;
    if (name !== '') names.add(name);
  }
  const both = removed.find((name) => names.has(name));
  return both === undefined ? undefined : `duplicate name ${both} found in the union of added+removed resources`;
}

function isBody(resource: SentResource): resource is SentResource & EncodedResource {
  return resource.value !== undefined;
}

function ttlsOf({ resources }: Response, read: ReadResources): (readonly [string, number | undefined])[] {
  const sent = new Map(resources.map(({ name, ttlMs }) => [name, ttlMs] as const));
  return [
    ...read.resources.map(({ name }) => [name, read.ttlMs.get(name) ?? sent.get(name)] as const),
    ...resources.filter((each) => !isBody(each)).map(({ name, ttlMs }) => [name, ttlMs] as const),
  ];
}
