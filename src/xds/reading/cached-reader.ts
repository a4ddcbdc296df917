// The reader of one subscription. It caches resources, so that an unchanged one costs only a hash and remains the same
// object.

import { createHash, hash } from 'node:crypto';
import { inTurns } from '../../common/time/next-turn.js';
import { redact } from '../../config/schema/sensitive.js';
import { escaped } from '../../config/text/problem.js';
import { RESOURCE_MESSAGES, type RefusedResource, type Resource, type ResourceType } from '../resource.js';
import {
  type EncodedResource,
  type ReadFile,
  type ReadResources,
  ResourceFileError,
  type ResourceReader,
} from '../resource-reader.js';
import { type Parcel, sizeOf, unpack } from './parcel.js';
import { isTooLarge, type ReadingThread, TOO_LARGE } from './reading-thread.js';
import type { ReadItem, ReadingResult, ReadingTask } from './task.js';

/** Bytes per task of the reading thread. */
const BATCH_BYTES = 1024 * 1024;
/** Work per turn of the loop: characters read, or bytes hashed. */
const TURN_CHARS = 256 * 1024;
/** Cost of a cached or refused resource, in characters read. */
const CACHED_COST_CHARS = 32;
/** Cost of any resource besides its bytes, which may be none. */
const RESOURCE_COST_BYTES = 256;
/** Minimum cache size. */
const MIN_CACHE_CHARS = 1024 * 1024;

/** A cached usable resource. */
interface Known {
  readonly resource: Resource;
  readonly ttlMs: number | undefined;
  /** In characters. */
  readonly size: number;
  /** Generation of the settings with which it was last read. */
  readonly generation: number;
}

/** A resource of an update. */
interface Entry {
  readonly key: string;
  readonly sent: { readonly version?: string; readonly aliases?: readonly string[] };
  /** The result of reading it; undefined: the cached one is current. */
  item: ReadItem | undefined;
  readonly known: Known | undefined;
}

/** A resource of a response. */
interface EncodedEntry extends Entry {
  readonly sent: EncodedResource;
}

export class CachedReader implements ResourceReader {
  readonly #thread: ReadingThread;
  /** By content key, least recently used first. */
  readonly #known = new Map<string, Known>();
  /** Key of the latest resource with a name: it replaces an older one. */
  readonly #keys = new Map<string, string>();
  /** Size of the cache in characters. */
  #size = 0;
  /** Size of the largest update, in characters. */
  #largest = MIN_CACHE_CHARS;
  /** The last queued work: updates are read one after the other. */
  #last: Promise<unknown> = Promise.resolve();
  readonly #closed = new AbortController();

  constructor(thread: ReadingThread) {
    this.#thread = thread;
  }

  read(type: ResourceType, version: string, encoded: readonly EncodedResource[]): Promise<ReadResources> {
    return this.#queue(() => this.#read(type, version, encoded));
  }

  readFile(type: ResourceType, path: string): Promise<ReadFile> {
    const task = { kind: 'file', message: RESOURCE_MESSAGES[type], path } as const;
    return this.#queue(() => this.#readWhole(task, path));
  }

  readText(type: ResourceType, json: Uint8Array, name: string): Promise<ReadFile> {
    const task = { kind: 'text', message: RESOURCE_MESSAGES[type], json, name } as const;
    return this.#queue(() => this.#readWhole(task, name));
  }

  close(): void {
    this.#closed.abort();
    this.#known.clear();
    this.#keys.clear();
  }

  #queue<Result>(work: () => Promise<Result>): Promise<Result> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => {});
    return done;
  }

  async #read(type: ResourceType, version: string, encoded: readonly EncodedResource[]): Promise<ReadResources> {
    const { generation } = this.#thread;
    const entries = await inTurns(this.#entriesOf(encoded));
    const fresh = entries.filter(({ known }) => known?.generation !== generation);
    await this.#readFresh(RESOURCE_MESSAGES[type], fresh);
    return inTurns(this.#collect(version, entries, generation));
  }

  /** Reads a DiscoveryResponse; `name` of its origin, for messages. */
  async #readWhole(task: Extract<ReadingTask, { kind: 'file' | 'text' }>, name: string): Promise<ReadFile> {
    const { generation } = this.#thread;
    const result = await this.#thread.run(task).catch((error) => {
      if (isTooLarge(error)) throw new ResourceFileError(`${name}: ${TOO_LARGE}`, 'refused');
      throw error;
    });
    if (result.refusal !== undefined) throw new ResourceFileError(result.refusal.details, result.refusal.fault);
    this.#thread.report(result);
    const keys = await inTurns(keysOfItems(result.items));
    const entries = result.items.map((item, index) => ({
      key: keys[index]!,
      sent: item.kind === 'alive' ? {} : item,
      item,
      known: this.#known.get(keys[index]!),
    }));
    return { version: result.version, ...(await inTurns(this.#collect(result.version, entries, generation))) };
  }

  /** Returns the entries of resources, with what is cached of them. */
  *#entriesOf(encoded: readonly EncodedResource[]): Generator<void, EncodedEntry[]> {
    const entries: EncodedEntry[] = [];
    let done = 0;
    for (const sent of encoded) {
      const key = JSON.stringify([sent.name, sent.typeUrl, hash('sha256', sent.value, 'base64')]);
      entries.push({ key, sent, item: undefined, known: this.#known.get(key) });
      done += costOf(sent);
      if (done < TURN_CHARS) continue;
      done = 0;
      yield;
    }
    return entries;
  }

  /** Reads uncached resources. Sets the item of each, even if the thread dies. */
  async #readFresh(message: string, entries: readonly EncodedEntry[]): Promise<void> {
    for (const batch of batchesOf(entries)) {
      const encoded = batch.map(({ sent }) => sent);
      const result = await this.#readBatch(message, encoded);
      this.#thread.report(result);
      for (const [index, entry] of batch.entries()) entry.item = result.items[index];
    }
  }

  async #readBatch(message: string, encoded: readonly EncodedResource[]): Promise<ReadingResult> {
    try {
      const task = { kind: 'resources', message, encoded: copied(encoded) } as const;
      return await this.#thread.runWithRetries(task, this.#closed.signal);
    } catch (error) {
      if (!isTooLarge(error)) throw error;
    }
    // A single resource may be too large: reads them one by one.
    if (encoded.length > 1) {
      const items: ReadItem[] = [];
      for (const one of encoded) {
        const result = await this.#readBatch(message, [one]);
        this.#thread.report(result);
        items.push(...result.items);
      }
      return { items, ...NOTHING_FOUND };
    }
    const [{ name, version }] = encoded as [EncodedResource];
    return { items: [{ kind: 'refused', name, version, details: TOO_LARGE, message: undefined }], ...NOTHING_FOUND };
  }

  /** Assembles an update from read and cached resources. */
  *#collect(version: string, entries: readonly Entry[], generation: number): Generator<void, ReadResources> {
    const resources: Resource[] = [];
    const refused: RefusedResource[] = [];
    const ttlMs = new Map<string, number>();
    const names = new Set<string>();
    let done = 0;
    let size = 0;
    for (const { key, sent, item, known: before } of entries) {
      if (done >= TURN_CHARS) {
        done = 0;
        yield;
      }
      done += CACHED_COST_CHARS;
      if (item?.kind === 'alive') {
        ttlMs.set(item.name, item.ttlMs);
        continue;
      }
      if (item?.kind === 'refused') {
        const message = item.message && (yield* unpack(item.message));
        refused.push({ name: item.name, version: item.version || version, details: item.details, message });
        done += item.message === undefined ? 0 : sizeOf(item.message);
        continue;
      }
      // The update may contain the same content twice.
      let known = before ?? this.#known.get(key);
      if (known === undefined) {
        known = yield* knownOf(item!, generation);
        done += known.size;
      } else if (known.generation !== generation) known = { ...known, generation };
      const resource = asSent(known.resource, sent, version);
      const { name } = resource;
      if (names.has(name)) {
        const details = `duplicate resource '${escaped(name)}': another resource of the update has the same name`;
        const message = redact(resource.message as object, resource.sensitive);
        refused.push({ name, version: resource.version, details, message });
        done += known.size;
        continue;
      }
      names.add(name);
      this.#cache(key, known);
      size += known.size;
      resources.push(resource);
      const lifeMs = item === undefined ? known.ttlMs : item.ttlMs;
      if (lifeMs !== undefined) ttlMs.set(name, lifeMs);
    }
    this.#largest = Math.max(this.#largest, size);
    this.#evict();
    return { resources, refused, ttlMs };
  }

  #cache(key: string, known: Known): void {
    if (this.#closed.signal.aborted) return;
    const { name } = known.resource;
    const before = this.#keys.get(name);
    if (before !== undefined) this.#drop(before);
    this.#keys.set(name, key);
    this.#known.set(key, known);
    this.#size += known.size;
  }

  #drop(key: string): void {
    this.#size -= this.#known.get(key)?.size ?? 0;
    this.#known.delete(key);
  }

  /** Evicts the least recently used resources, because new names may be sent without limit. */
  #evict(): void {
    for (const [key, { resource }] of this.#known) {
      if (this.#size <= 2 * this.#largest) return;
      this.#drop(key);
      this.#keys.delete(resource.name);
    }
  }
}

/** Returns the resource with the version and aliases that were sent beside its bytes. */
function asSent(resource: Resource, { version = '', aliases = [] }: Entry['sent'], ofUpdate: string): Resource {
  return {
    ...resource,
    version: version || resource.version || ofUpdate,
    aliases: aliases.length > 0 ? aliases : resource.aliases,
  };
}

const NOTHING_FOUND = {
  warnings: [],
  counts: { unknownFields: 0, deprecatedUses: 0, unfinishedUses: 0, leftOutFilters: 0 },
};

function* knownOf(item: ReadItem, generation: number): Generator<void, Known> {
  if (item.kind !== 'usable') throw new TypeError(`a resource that is ${item.kind}`);
  const { name, version, aliases, sensitive, ttlMs } = item;
  const message = yield* unpack(item.message);
  const resource = { name, version, message, aliases, sensitive };
  return { resource, ttlMs, size: sizeOf(item.message), generation };
}

function* keysOfItems(items: readonly ReadItem[]): Generator<void, string[]> {
  const keys: string[] = [];
  let done = 0;
  for (const item of items) {
    if (item.kind !== 'usable') {
      keys.push('');
      continue;
    }
    const { name, message } = item;
    keys.push(JSON.stringify([name, hashOf(message)]));
    done += sizeOf(message);
    if (done < TURN_CHARS) continue;
    done = 0;
    yield;
  }
  return keys;
}

function hashOf({ text, lists }: Parcel): string {
  const hashed = createHash('sha256').update(text);
  for (const { path, pieces } of lists) {
    hashed.update(JSON.stringify(path));
    for (const piece of pieces) hashed.update(piece);
  }
  return hashed.digest('base64');
}

/** Copies the bytes to a separate buffer: a message to a thread carries whole buffers, and these are parts of the response. */
function copied(encoded: readonly EncodedResource[]): EncodedResource[] {
  const buffer = new Uint8Array(encoded.reduce((bytes, { value }) => bytes + value.length, 0));
  let end = 0;
  return encoded.map((resource) => {
    buffer.set(resource.value, end);
    const start = end;
    end += resource.value.length;
    return { ...resource, value: buffer.subarray(start, end) };
  });
}

function costOf({ value }: EncodedResource): number {
  return value.length + RESOURCE_COST_BYTES;
}

function* batchesOf(entries: readonly EncodedEntry[]): Generator<EncodedEntry[], void> {
  let batch: EncodedEntry[] = [];
  let bytes = 0;
  for (const entry of entries) {
    batch.push(entry);
    bytes += costOf(entry.sent);
    if (bytes < BATCH_BYTES) continue;
    yield batch;
    batch = [];
    bytes = 0;
  }
  if (batch.length > 0) yield batch;
}
