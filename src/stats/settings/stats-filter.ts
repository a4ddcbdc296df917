// stats_matcher: which stats exist for readers. Rejected stats are in no section, so no reader sees them.

import type { StringMatcher } from '../../config/generated/api.js';
import { type StatTable, selectTables, type Tables } from '../read/section.js';
import { anyOf, compileNameMatcher, type NameMatcher, noneOf } from './name-matcher.js';
import type { MatcherSettings } from './settings.js';

const NOTHING: NameMatcher = { matches: () => false, matchesAll: () => false };

export class StatsFilter {
  readonly #matcher: NameMatcher;
  /** Remaining tables, by the original table and the pattern of remaining stats. */
  readonly #remaining = new WeakMap<StatTable, Map<string, StatTable>>();

  /** @throws BatonError CONFIG_INVALID or REGEX_INVALID */
  constructor(settings: MatcherSettings) {
    this.#matcher = settings.kind === 'reject_all' ? NOTHING : listMatcher(settings.kind, settings.patterns);
  }

  /** Returns whether a name is shown. */
  admits(name: string): boolean {
    return this.#matcher.matches(name);
  }

  /** Returns the tables of a section with this prefix without rejected stats; undefined if none remain. */
  tables(prefix: string, tables: Tables): Tables | undefined {
    const all = this.#matcher.matchesAll(prefix);
    if (all !== undefined) return all ? tables : undefined;
    const remaining = selectTables(tables, (table) => this.#remainingTable(prefix, table));
    return remaining.every((table) => table.length === 0) ? undefined : remaining;
  }

  #remainingTable(prefix: string, table: StatTable): StatTable {
    const shown = table.names.map((name) => this.#matcher.matches(prefix + name));
    if (!shown.includes(false)) return table;
    let known = this.#remaining.get(table);
    if (known === undefined) this.#remaining.set(table, (known = new Map()));
    const key = shown.map((isShown) => (isShown ? '1' : '0')).join('');
    let remaining = known.get(key);
    if (remaining === undefined) known.set(key, (remaining = table.only((index) => shown[index]!)));
    return remaining;
  }
}

function listMatcher(kind: 'exclude' | 'include', patterns: readonly StringMatcher[]): NameMatcher {
  const listed = anyOf(patterns.map(compileNameMatcher));
  return kind === 'include' ? listed : noneOf(listed);
}
