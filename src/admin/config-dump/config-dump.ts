// What /config_dump is made of: one dump for each kind of configuration, with lists of resources that are made as they go out.

import type { JsonObject } from '../json.js';

/** A message of a list: `{name, last_updated, secret}`. */
export interface DumpResource {
  /** What name_regex is matched with. */
  readonly name: string;
  /** In proto JSON form, redacted. */
  readonly message: JsonObject;
}

export interface DumpList {
  /** Name of the field: `static_clusters`. */
  readonly field: string;
  /** May be read more than once. */
  readonly resources: Iterable<DumpResource>;
}

/** One element of `configs`. */
export interface ConfigDump {
  /** Full name of the message: `envoy.admin.v3.ClustersConfigDump`. */
  readonly message: string;
  /** Fields that are no lists of resources, in proto JSON form, redacted. */
  readonly fields: JsonObject;
  readonly lists: readonly DumpList[];
}
