// Tables of implemented fields for extensions of tests, which take a message of Envoy's for the few fields that they need.

import type { Messages } from '../../src/config/generated/api.js';
import type { ALL, ImplementedTable } from '../../src/config/implemented/table.js';

type PartialTable = {
  readonly [N in keyof Messages]?: typeof ALL | { readonly [F in keyof Messages[N]]?: true };
};

/** A table that leaves open what it does with the other fields: they are refused. */
export function partialTable(rows: PartialTable): ImplementedTable {
  return rows as ImplementedTable;
}
