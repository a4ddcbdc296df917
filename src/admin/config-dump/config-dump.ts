// The content of /config_dump: one dump per kind of configuration, with lists of resources that are produced while they are
// sent.

import type { JsonObject } from '../json.js';

/** An element of a list: `{name, last_updated, secret}`. */
export interface DumpResource {
  /** The name that name_regex is matched against. */
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
  /** Fields other than lists of resources, in proto JSON form, redacted. */
  readonly fields: JsonObject;
  readonly lists: readonly DumpList[];
}
