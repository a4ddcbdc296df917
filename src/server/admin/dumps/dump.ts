// The form in which the files of this folder describe a dump of /config_dump.

import type { DumpResource } from '../../../admin/config-dump/config-dump.js';
import type { JsonObject } from '../../../admin/json.js';

export interface Dump {
  /** Name without its package, envoy.admin.v3. */
  readonly message: string;
  readonly fields?: JsonObject;
  readonly lists?: { readonly [field: string]: Iterable<DumpResource> };
}

/** Returns a message as an Any. */
export function any(name: string, message: object): JsonObject {
  return { '@type': `type.googleapis.com/${name}`, ...(message as JsonObject) };
}

/** Maps each item lazily, again for each iteration. */
export function mapped<T>(
  items: () => Iterable<T>,
  make: (item: T, index: number) => DumpResource,
): Iterable<DumpResource> {
  return {
    *[Symbol.iterator](): Generator<DumpResource, void> {
      let index = 0;
      for (const item of items()) yield make(item, index++);
    },
  };
}

/** Returns items in the order of their names, in which Envoy dumps clusters and endpoints. */
export function byName<T>(items: Iterable<T>, nameOf: (item: T) => string): T[] {
  return [...items].sort((a, b) => {
    const [first, second] = [nameOf(a), nameOf(b)];
    return first < second ? -1 : first > second ? 1 : 0;
  });
}
