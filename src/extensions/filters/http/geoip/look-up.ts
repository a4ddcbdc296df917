// Looks an address up in one database, and counts that.

import type { HeaderBlock, HeaderKey, Scope } from '../../../sdk.js';
import type { CurrentDatabase } from './database-files.js';
import type { DatabaseFields } from './database-kinds.js';
import type { MmdbValue } from './mmdb.js';
import { DatabaseStats } from './stats.js';

/** The name of an ISP that hides the addresses of its clients. */
const RELAY = 'iCloud Private Relay';
/** Bytes that no header field has. */
const UNSENDABLE = /[\0-\x08\x0a-\x1f\x7f]/;

export class DatabaseLookUp {
  readonly #fields: DatabaseFields;
  readonly #current: CurrentDatabase;
  readonly #stats: Scope;

  constructor(fields: DatabaseFields, current: CurrentDatabase, stats: Scope) {
    this.#fields = fields;
    this.#current = current;
    this.#stats = stats;
  }

  /** Sets the header fields of an address of 4 or 16 bytes. `done`: fields that are set already. */
  apply(ip: Uint8Array, headers: HeaderBlock, done: Set<HeaderKey>): void {
    const { database } = this.#current;
    if (database === undefined) return;
    const { at } = DatabaseStats;
    const before = done.size;
    try {
      const place = database.lookUp(ip);
      // As in Envoy, which regards cities so.
      if (place === undefined && this.#fields.kind === 'city') this.#stats.increment(at.lookup_error);
      if (place !== undefined) this.#set(database.values(place, this.#fields.paths), headers, done);
    } catch {
      this.#stats.increment(at.lookup_error);
    }
    if (done.size > before) this.#stats.increment(at.hit);
    this.#stats.increment(at.total);
  }

  #set(values: readonly (MmdbValue | undefined)[], headers: HeaderBlock, done: Set<HeaderKey>): void {
    const { headers: keys, relayAt } = this.#fields;
    for (const [index, value] of values.entries()) {
      const key = keys[index]!;
      const text = index === relayAt ? String(value === RELAY) : textOf(value);
      if (text === '' || done.has(key)) continue;
      headers.set(key, text);
      done.add(key);
    }
  }
}

function textOf(value: MmdbValue | undefined): string {
  if (value === undefined || value === 0) return '';
  const text = String(value);
  return UNSENDABLE.test(text) ? '' : text.trim();
}
