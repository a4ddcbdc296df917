// The runtime layer that POST /runtime_modify sets.

import { BatonError } from '../common/errors/errors.js';
import type { Layer } from './layer.js';
import { type RuntimeValue, valueOfText } from './value.js';

/** Maximum number of keys; each thread has a copy of them. */
export const MAX_ADMIN_KEYS = 200_000;
/** Maximum length of all keys and values together. */
export const MAX_ADMIN_CHARACTERS = 16 * 1024 * 1024;

/** Keys with their values; undefined removes the key. */
export type AdminEntries = readonly (readonly [key: string, value: RuntimeValue | undefined])[];

/** Values parsed per step, about a millisecond's work. */
const PER_STEP = 1000;

/** Parses the texts of a request in steps. An empty text removes the key. */
export function* readAdminEntries(
  texts: Iterable<readonly [key: string, text: string]>,
): Generator<void, AdminEntries> {
  const entries: [string, RuntimeValue | undefined][] = [];
  for (const [key, text] of texts) {
    entries.push([key, text === '' ? undefined : valueOfText(text)]);
    if (entries.length % PER_STEP === 0) yield;
  }
  return entries;
}

/** The admin layer, which unlike other layers is mutable. */
export class AdminLayer implements Layer {
  readonly name: string;
  readonly values = new Map<string, RuntimeValue>();
  #characters = 0;

  constructor(name: string) {
    this.name = name;
  }

  /** Throws a BatonError RUNTIME_LAYER, and changes nothing, if the layer would exceed its limits. */
  set(entries: AdminEntries): void {
    this.#check(entries);
    for (const [key, value] of entries) {
      this.#characters += sizeOf(key, value) - sizeOf(key, this.values.get(key));
      if (value === undefined) this.values.delete(key);
      else this.values.set(key, value);
    }
  }

  /** Counts a key that is given twice twice, but requests contain each key once. */
  #check(entries: AdminEntries): void {
    let keys = this.values.size;
    let characters = this.#characters;
    for (const [key, value] of entries) {
      const before = this.values.get(key);
      characters += sizeOf(key, value) - sizeOf(key, before);
      keys += Number(value !== undefined) - Number(before !== undefined);
    }
    if (keys > MAX_ADMIN_KEYS && keys > this.values.size) throw tooMuch(`${MAX_ADMIN_KEYS} keys`);
    if (characters > MAX_ADMIN_CHARACTERS && characters > this.#characters) {
      throw tooMuch(`${MAX_ADMIN_CHARACTERS} characters of keys and values`);
    }
  }
}

function sizeOf(key: string, value: RuntimeValue | undefined): number {
  return value === undefined ? 0 : key.length + value.text.length;
}

function tooMuch(limit: string): BatonError {
  return new BatonError('RUNTIME_LAYER', `the admin layer of runtime holds at most ${limit}`, {
    remedy: 'remove keys by setting empty values, or use a layer of another kind',
  });
}
