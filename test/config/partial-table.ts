// Tables of implemented fields for test extensions, which use a few fields of an Envoy message.

import type { Messages } from '../../src/config/generated/api.js';
import type { ALL, ImplementedTable } from '../../src/config/implemented/table.js';

type PartialTable = {
  readonly [N in keyof Messages]?: typeof ALL | { readonly [F in keyof Messages[N]]?: true };
};

/** Returns a table that refuses the fields without a row. */
export function partialTable(rows: PartialTable): ImplementedTable {
  return rows as ImplementedTable;
}
