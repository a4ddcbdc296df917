// Selects the stats of a response by the parameters that all formats share, while the store is walked.

import { Kind } from '../layout.js';
import type { StatsReader } from './reader.js';
import { Pass, type Section, type StatTable } from './section.js';
import { SortedWalk } from './sorted-walk.js';

/** The requested stats (admin-and-cli.md, "Stats"). Absent fields do not restrict. */
export interface StatsQuery {
  /** Only counters ever incremented, gauges ever changed, histograms ever merged and texts ever set. */
  readonly usedOnly?: boolean;
  /** Whether a full name is selected. */
  readonly filter?: (name: string) => boolean;
  /** Selects the names that `filter` rejects instead. */
  readonly invertFilter?: boolean;
  readonly type?: 'all' | 'counters' | 'gauges' | 'histograms' | 'textreadouts';
  /** Hidden stats; default: 'exclude'. */
  readonly hidden?: 'exclude' | 'include' | 'only';
}

/** Number of rejected stats in a row after which the walk pauses. */
const PAUSE_AFTER = 1000;
/** Time spent in the filter after which the walk pauses. */
const PAUSE_AFTER_MS = 2;

/** The selected stats of one pass, in the order of their names. */
export class Selection {
  /** The current stat, after next() returned true. */
  section!: Section;
  table!: StatTable;
  index = -1;
  /**
   * After next() returned true: there is no current stat, because the walk pauses to let the thread do other work.
   */
  isPaused = false;
  readonly #reader: StatsReader;
  readonly #query: StatsQuery;
  readonly #walk: SortedWalk;
  readonly #kind: Kind | undefined;
  readonly #isEmpty: boolean;
  /** Time spent in the filter since the last pause. */
  #filterMs = 0;

  constructor(reader: StatsReader, query: StatsQuery, pass: Pass) {
    this.#reader = reader;
    this.#query = query;
    this.#walk = new SortedWalk(reader.sections, pass);
    const type = query.type ?? 'all';
    this.#kind = type === 'counters' ? Kind.Counter : type === 'gauges' ? Kind.Gauge : undefined;
    this.#isEmpty = type !== 'all' && passOf(type) !== pass;
  }

  /** Full name of the current stat. */
  get name(): string {
    return this.section.prefix + this.table.names[this.index]!;
  }

  /** Moves to the next selected stat, or pauses; returns false at the end. */
  next(): boolean {
    this.isPaused = false;
    if (this.#isEmpty) return false;
    if (this.#filterMs > PAUSE_AFTER_MS) return this.#pause();
    for (let passed = 0; this.#walk.next(); ) {
      this.section = this.#walk.section;
      this.table = this.#walk.table;
      this.index = this.#walk.index;
      if (this.#isSelected()) return true;
      if (++passed >= PAUSE_AFTER || this.#filterMs > PAUSE_AFTER_MS) return this.#pause();
    }
    return false;
  }

  #pause(): true {
    this.#filterMs = 0;
    this.isPaused = true;
    return true;
  }

  #isSelected(): boolean {
    const { usedOnly, filter, invertFilter, hidden } = this.#query;
    const { section, table, index } = this;
    if (this.#kind !== undefined && table.kinds[index] !== this.#kind) return false;
    if (section.hidden ? hidden !== 'include' && hidden !== 'only' : hidden === 'only') return false;
    if (!this.#reader.isLive(section)) return false;
    if (usedOnly === true && !this.#reader.isUsed(section, table, index)) return false;
    if (filter === undefined) return true;
    const begunMs = performance.now();
    const isMatch = filter(this.name);
    this.#filterMs += performance.now() - begunMs;
    return isMatch !== (invertFilter === true);
  }
}

function passOf(type: 'counters' | 'gauges' | 'histograms' | 'textreadouts'): Pass {
  if (type === 'histograms') return Pass.Histograms;
  return type === 'textreadouts' ? Pass.Texts : Pass.Values;
}
