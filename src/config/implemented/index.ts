// The table of implemented fields: what is set beyond it is refused at load time, by name and position.

import { ACCESS_LOG } from './access-log.js';
import { BOOTSTRAP } from './bootstrap.js';
import { CLUSTER } from './cluster.js';
import { COMMON } from './common.js';
import { CONFIG_SOURCE } from './config-source.js';
import { HTTP } from './http.js';
import { LISTENER } from './listener.js';
import { ROUTE } from './route.js';
import { STATS } from './stats.js';
import { STATS_SINKS } from './stats-sinks.js';
import {
  type Accepted,
  ALL,
  type ByValue,
  type EveryValue,
  type ImplementedTable,
  type OnlyExtension,
  type OnlyFalse,
  type Refused,
} from './table.js';

/** Everything that the rooms of this build implement; extensions add their own rows in the catalog. */
export const IMPLEMENTED: ImplementedTable = {
  ...COMMON,
  ...BOOTSTRAP,
  ...CONFIG_SOURCE,
  ...LISTENER,
  ...HTTP,
  ...ROUTE,
  ...CLUSTER,
  ...ACCESS_LOG,
  ...STATS,
  ...STATS_SINKS,
};

/** The table with what extensions implement of their own messages. */
export function implementedBy(extensions: readonly { readonly implemented?: ImplementedTable }[]): ImplementedTable {
  return Object.assign({}, IMPLEMENTED, ...extensions.map((extension) => extension.implemented));
}

/** A row whatever its field. */
export type AnyRow = true | Refused | Accepted | OnlyExtension | OnlyFalse | ByValue<string> | EveryValue;

/** The row of a field, or undefined when an extension does not name it among those of its own message that it implements. */
export function rowOf(table: ImplementedTable, message: string, field: string): AnyRow | undefined {
  const rows = (table as { readonly [message: string]: typeof ALL | { readonly [field: string]: AnyRow } | undefined })[
    message
  ];
  if (rows === undefined) return undefined;
  return rows === ALL ? true : rows[field];
}

/** Whether a configuration may set the field, in some way at least. */
export function isOpen(row: AnyRow | undefined): row is Exclude<AnyRow, Refused> {
  return row !== undefined && !(typeof row === 'object' && 'refused' in row);
}
