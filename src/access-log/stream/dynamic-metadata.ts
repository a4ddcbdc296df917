// Dynamic metadata of a stream: a structure for each namespace, which filters set and logs, headers and other filters read.

import type { Json, Struct } from '../../config/generated/api.js';

/** Levels of nested structures that merge() follows; deeper ones are replaced. */
const MAX_DEPTH = 32;

export class DynamicMetadata {
  readonly #namespaces = new Map<string, Struct>();

  /** Returns the structure of a namespace; undefined: there is none. */
  get(namespace: string): Struct | undefined {
    return this.#namespaces.get(namespace);
  }

  has(namespace: string): boolean {
    return this.#namespaces.has(namespace);
  }

  /** Returns the structures with their namespaces. */
  entries(): Iterable<[namespace: string, value: Struct]> {
    return this.#namespaces.entries();
  }

  /** Replaces the structure of a namespace. */
  set(namespace: string, value: Struct): void {
    this.#namespaces.set(namespace, value);
  }

  /**
   * Merges `value` into the structure of a namespace, as Envoy's StructUtil::update: structures are merged, lists appended, and
   * other values replaced.
   */
  merge(namespace: string, value: Struct): void {
    const before = this.#namespaces.get(namespace);
    this.#namespaces.set(namespace, before === undefined ? value : merged(before, value, 0));
  }
}

function merged(before: Struct, value: Struct, depth: number): Struct {
  const result: Record<string, Json> = { __proto__: null, ...before } as unknown as Record<string, Json>;
  for (const key of Object.keys(value)) {
    const next = value[key]!;
    const last = Object.hasOwn(before, key) ? before[key]! : undefined;
    if (isStruct(last) && isStruct(next)) result[key] = depth < MAX_DEPTH ? merged(last, next, depth + 1) : next;
    else if (Array.isArray(last) && Array.isArray(next)) result[key] = [...last, ...next];
    else result[key] = next;
  }
  return result;
}

function isStruct(value: Json | undefined): value is Struct {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
