// The table of implemented fields. Other fields that are set are refused at load time, by name and position.

import { ACCESS_LOG } from './access-log.js';
import { BOOTSTRAP } from './bootstrap.js';
import { CLUSTER } from './cluster.js';
import { COMMON } from './common.js';
import { CONFIG_SOURCE } from './config-source.js';
import { DNS_CACHE } from './dns-cache.js';
import { EXPRESSIONS } from './expressions.js';
import { HTTP } from './http.js';
import { LISTENER } from './listener.js';
import { ROUTE } from './route.js';
import { SECRET } from './secret.js';
import { STATS } from './stats.js';
import { STATS_SINKS } from './stats-sinks.js';
import {
  type Accepted,
  ALL,
  type ByValue,
  type DataOf,
  type EveryValue,
  type ImplementedTable,
  type OnlyEmpty,
  type OnlyExtension,
  type OnlyFalse,
  type OnlyWithin,
  type Refused,
} from './table.js';

/** The fields that the rooms of this build implement. Extensions add their own rows in the catalog. */
export const IMPLEMENTED: ImplementedTable = {
  ...COMMON,
  ...EXPRESSIONS,
  ...BOOTSTRAP,
  ...CONFIG_SOURCE,
  ...LISTENER,
  ...HTTP,
  ...ROUTE,
  ...CLUSTER,
  ...DNS_CACHE,
  ...ACCESS_LOG,
  ...STATS,
  ...STATS_SINKS,
  ...SECRET,
};

/** Returns the table with the rows of these extensions. */
export function implementedBy(extensions: readonly { readonly implemented?: ImplementedTable }[]): ImplementedTable {
  return Object.assign({}, IMPLEMENTED, ...extensions.map((extension) => extension.implemented));
}

/** A row of any field. */
export type AnyRow =
  | true
  | Refused
  | Accepted
  | OnlyExtension
  | OnlyEmpty
  | OnlyWithin
  | DataOf
  | OnlyFalse
  | ByValue<string>
  | EveryValue;

/** Returns the row of a field; undefined if an extension does not list the field of its own message as implemented. */
export function rowOf(table: ImplementedTable, message: string, field: string): AnyRow | undefined {
  const rows = (table as { readonly [message: string]: typeof ALL | { readonly [field: string]: AnyRow } | undefined })[
    message
  ];
  if (rows === undefined) return undefined;
  return rows === ALL ? true : rows[field];
}

/** Returns whether a configuration may set the field at all. */
export function isOpen(row: AnyRow | undefined): row is Exclude<AnyRow, Refused> {
  return row !== undefined && !(typeof row === 'object' && 'refused' in row);
}
