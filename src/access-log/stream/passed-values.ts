// What a connection to an internal listener brings with it from the stream and the host that it was opened for.

import type { Struct } from '../../config/generated/api.js';
import type { FilterStateObject } from './filter-state.js';

export interface PassedValues {
  /** Structures of dynamic metadata, by namespace (passthrough_metadata). */
  readonly metadata: readonly (readonly [namespace: string, value: Struct])[];
  /** Filter state that the stream shares with connections to hosts, by key. */
  readonly objects: readonly (readonly [key: string, object: FilterStateObject])[];
}
