// The responses that a worker has cached, up to a limit of bytes: the least recently used ones go first.

import type { StoredResponse } from './stored-response.js';
import { type VaryingFields, variantOf } from './vary.js';

/** Of one worker, for all its filters. */
const MAX_BYTES = 32 * 1024 * 1024;
/** Of one response. */
export const MAX_RESPONSE_BYTES = 4 * 1024 * 1024;
/** Of responses that are being received. */
const MAX_PENDING_BYTES = 16 * 1024 * 1024;
/** Variants of one response. */
const MAX_VARIANTS = 64;

/** What is stored for a key: one response, or the names of the fields by which it varies. */
type Entry = StoredResponse | Variants;

class Variants {
  readonly names: readonly string[];
  /** The keys of its responses. */
  readonly keys = new Set<string>();
  readonly bytes: number;

  constructor(names: readonly string[], key: string) {
    this.names = names;
    this.bytes = key.length + 512;
  }
}

export class ResponseStore {
  /** The most recently used last. */
  readonly #entries = new Map<string, Entry>();
  #bytes = 0;
  #pending = 0;
  #users = 0;

  addUser(): void {
    this.#users++;
  }

  /** The responses go with the last user. */
  removeUser(): void {
    if (--this.#users > 0) return;
    this.#entries.clear();
    this.#bytes = 0;
  }

  find(key: string, fields: VaryingFields): StoredResponse | undefined {
    const entry = this.#use(key);
    if (!(entry instanceof Variants)) return entry;
    return this.#use(keyOfVariant(key, entry.names, fields)) as StoredResponse | undefined;
  }

  /** `names`: the fields by which the response varies. */
  put(key: string, names: readonly string[], fields: VaryingFields, response: StoredResponse): void {
    if (this.#users === 0 || response.bytes > MAX_RESPONSE_BYTES) return;
    const known = this.#entries.get(key);
    if (names.length === 0) {
      if (known instanceof Variants) this.#dropVariants(known);
      return this.#set(key, response);
    }
    let variants = known instanceof Variants && sameNames(known.names, names) ? known : undefined;
    if (variants === undefined || variants.keys.size >= MAX_VARIANTS) {
      if (known instanceof Variants) this.#dropVariants(known);
      variants = new Variants(names, key);
    }
    const own = keyOfVariant(key, names, fields);
    variants.keys.add(own);
    this.#set(key, variants);
    this.#set(own, response);
  }

  /** Reserves memory for a response that is being received. Returns false if there is none. */
  reserve(bytes: number): boolean {
    if (this.#pending + bytes > MAX_PENDING_BYTES) return false;
    this.#pending += bytes;
    this.#evict();
    return true;
  }

  release(bytes: number): void {
    this.#pending -= bytes;
  }

  /** Returns an entry, and makes it the most recently used one. */
  #use(key: string): Entry | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry;
  }

  #set(key: string, entry: Entry): void {
    this.#delete(key);
    this.#entries.set(key, entry);
    this.#bytes += entry.bytes + key.length;
    this.#evict();
  }

  #delete(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    this.#bytes -= entry.bytes + key.length;
  }

  #dropVariants({ keys }: Variants): void {
    for (const key of keys) this.#delete(key);
  }

  #evict(): void {
    for (const key of this.#entries.keys()) {
      if (this.#bytes + this.#pending <= MAX_BYTES) return;
      this.#delete(key);
    }
  }
}

function keyOfVariant(key: string, names: readonly string[], fields: VaryingFields): string {
  return `${key}\n\n${variantOf(names, fields)}`;
}

function sameNames(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((name, index) => name === b[index]);
}

/** The store of this worker. */
export const STORE = new ResponseStore();
