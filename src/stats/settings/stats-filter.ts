// stats_matcher: which stats are shown at all. What it rejects is in no section, so that no reader meets it.

import type { StringMatcher } from '../../config/generated/api.js';
import { type StatTable, selectTables, type Tables } from '../read/section.js';
import { anyOf, compileNameMatcher, type NameMatcher, noneOf } from './name-matcher.js';
import type { MatcherSettings } from './settings.js';

const NOTHING: NameMatcher = { matches: () => false, matchesAll: () => false };

export class StatsFilter {
  readonly #matcher: NameMatcher;
  /** Tables that are left of others, by the others and which of their stats are left. */
  readonly #left = new WeakMap<StatTable, Map<string, StatTable>>();

  /** @throws BatonError CONFIG_INVALID or REGEX_INVALID */
  constructor(settings: MatcherSettings) {
    this.#matcher = settings.kind === 'reject_all' ? NOTHING : listMatcher(settings.kind, settings.patterns);
  }

  /** Whether a name is shown. */
  admits(name: string): boolean {
    return this.#matcher.matches(name);
  }

  /** The tables of a section with this prefix without what is rejected; undefined when that is everything. */
  tables(prefix: string, tables: Tables): Tables | undefined {
    const all = this.#matcher.matchesAll(prefix);
    if (all !== undefined) return all ? tables : undefined;
    const left = selectTables(tables, (table) => this.#tableLeft(prefix, table));
    return left.every((table) => table.length === 0) ? undefined : left;
  }

  #tableLeft(prefix: string, table: StatTable): StatTable {
    const shown = table.names.map((name) => this.#matcher.matches(prefix + name));
    if (!shown.includes(false)) return table;
    let known = this.#left.get(table);
    if (known === undefined) this.#left.set(table, (known = new Map()));
    const key = shown.map((isShown) => (isShown ? '1' : '0')).join('');
    let left = known.get(key);
    if (left === undefined) known.set(key, (left = table.only((index) => shown[index]!)));
    return left;
  }
}

function listMatcher(kind: 'exclude' | 'include', patterns: readonly StringMatcher[]): NameMatcher {
  const listed = anyOf(patterns.map(compileNameMatcher));
  return kind === 'include' ? listed : noneOf(listed);
}
