// The layer of runtime that POST /runtime_modify sets.

import { BatonError } from '../common/errors/errors.js';
import type { Layer } from './layer.js';
import { type RuntimeValue, valueOfText } from './value.js';

/** Of all keys that are set; each thread has them all. */
export const MAX_ADMIN_KEYS = 200_000;
/** Of keys and values together. */
export const MAX_ADMIN_CHARACTERS = 16 * 1024 * 1024;

/** Keys with their values; undefined takes one away. */
export type AdminEntries = readonly (readonly [key: string, value: RuntimeValue | undefined])[];

/** Values read in one step: about a millisecond's work. */
const PER_STEP = 1000;

/** Reads the texts of a request, in steps; an empty text takes a key away. */
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

/** Unlike other layers it changes. */
export class AdminLayer implements Layer {
  readonly name: string;
  readonly values = new Map<string, RuntimeValue>();
  #characters = 0;

  constructor(name: string) {
    this.name = name;
  }

  /** Throws a BatonError RUNTIME_LAYER, and changes nothing, when that would be too much. */
  set(entries: AdminEntries): void {
    this.#check(entries);
    for (const [key, value] of entries) {
      this.#characters += sizeOf(key, value) - sizeOf(key, this.values.get(key));
      if (value === undefined) this.values.delete(key);
      else this.values.set(key, value);
    }
  }

  /** Of keys that are given twice the bound counts both: requests have each once. */
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
    remedy: 'take keys away with empty values, or use a layer of another kind',
  });
}
