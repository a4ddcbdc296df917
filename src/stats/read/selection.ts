// Which stats an answer shows: the parameters that all formats share, applied while the store is walked.

import { Kind } from '../layout.js';
import type { StatsReader } from './reader.js';
import { Pass, type Section, type StatTable } from './section.js';
import { SortedWalk } from './sorted-walk.js';

/** What is asked for (admin-and-cli.md, "Stats"). Everything left out means: no restriction. */
export interface StatsQuery {
  /** Only counters ever incremented, gauges ever changed, histograms ever merged and texts ever set. */
  readonly usedOnly?: boolean;
  /** Whether a full name is wanted. */
  readonly filter?: (name: string) => boolean;
  /** Names that `filter` refuses are wanted instead. */
  readonly invertFilter?: boolean;
  readonly type?: 'all' | 'counters' | 'gauges' | 'histograms' | 'textreadouts';
  /** Hidden stats: left out unless this says otherwise. */
  readonly hidden?: 'exclude' | 'include' | 'only';
}

/** How many stats in a row may be passed over before the walk rests. */
const REST_AFTER = 1000;
/** How long a filter may take before it does. */
const REST_AFTER_MS = 2;

/** The selected stats of one pass, in the order of their names. */
export class Selection {
  /** Where the selection stands, after next() said true. */
  section!: Section;
  table!: StatTable;
  index = -1;
  /** After next() said true: it stands nowhere, because it has taken a while and others may want the thread. */
  isResting = false;
  readonly #reader: StatsReader;
  readonly #query: StatsQuery;
  readonly #walk: SortedWalk;
  readonly #kind: Kind | undefined;
  readonly #isEmpty: boolean;
  /** What the filter has taken since the last rest. */
  #filterMs = 0;

  constructor(reader: StatsReader, query: StatsQuery, pass: Pass) {
    this.#reader = reader;
    this.#query = query;
    this.#walk = new SortedWalk(reader.sections, pass);
    const type = query.type ?? 'all';
    this.#kind = type === 'counters' ? Kind.Counter : type === 'gauges' ? Kind.Gauge : undefined;
    this.#isEmpty = type !== 'all' && passOf(type) !== pass;
  }

  /** Full name of the stat. */
  get name(): string {
    return this.section.prefix + this.table.names[this.index]!;
  }

  /** Goes on to the next selected stat, or rests on the way; false at the end. */
  next(): boolean {
    this.isResting = false;
    if (this.#isEmpty) return false;
    if (this.#filterMs > REST_AFTER_MS) return this.#rest();
    for (let passed = 0; this.#walk.next(); ) {
      this.section = this.#walk.section;
      this.table = this.#walk.table;
      this.index = this.#walk.index;
      if (this.#isWanted()) return true;
      if (++passed >= REST_AFTER || this.#filterMs > REST_AFTER_MS) return this.#rest();
    }
    return false;
  }

  #rest(): true {
    this.#filterMs = 0;
    this.isResting = true;
    return true;
  }

  #isWanted(): boolean {
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
