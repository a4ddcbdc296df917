// How a dump of /config_dump is written down here.

import type { DumpResource } from '../../../admin/config-dump/config-dump.js';
import type { JsonObject } from '../../../admin/json.js';

export interface Dump {
  /** Without its package, envoy.admin.v3. */
  readonly message: string;
  readonly fields?: JsonObject;
  readonly lists?: { readonly [field: string]: Iterable<DumpResource> };
}

/** A message as an Any. */
export function any(name: string, message: object): JsonObject {
  return { '@type': `type.googleapis.com/${name}`, ...(message as JsonObject) };
}

/** What `make` makes of each item, made when its turn comes, however often all of them are read. */
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
