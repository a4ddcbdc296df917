// The scopes of a store: which prefixes there are, the blocks that they have and give back, and their records for readers.

import { type HistogramMerger, MergedHistogram } from './histograms/merged-histogram.js';
import { Kind, type Layout, type StatEntry } from './layout.js';
import { type BlockSlots, clearBlock } from './memory/foreign-writes.js';
import { Control, RecordType, SCOPE_TEXT, ScopeFlag, ScopeRecord } from './memory/format.js';
import type { Block, StatsMemory } from './memory/memory.js';
import type { ScopeRef } from './thread-stats.js';

/** A layout as its store knows it: slots by kind. */
export interface KnownLayout extends BlockSlots {
  readonly layout: Layout;
  readonly texts: readonly number[];
  /** Blocks serve scopes of one layout only, so that the histograms they point to fit the next scope. */
  readonly freeBlocks: Block[];
}

export interface KnownScope {
  readonly ref: ScopeRef;
  readonly layout: KnownLayout;
  /** Its record in the directory. */
  readonly place: number;
  /** Its histograms, in the order of the layout's. */
  readonly merged: readonly MergedHistogram[];
  references: number;
}

export class ScopeDirectory {
  /** Entries of every layout by its number, for readers. */
  readonly layoutEntries: (readonly StatEntry[])[] = [];
  /** Stats of all scopes. */
  size = 0;
  readonly #memory: StatsMemory;
  readonly #merger: HistogramMerger;
  readonly #layoutIds = new Map<Layout, number>();
  readonly #layouts: KnownLayout[] = [];
  readonly #scopes = new Map<string, KnownScope[]>();

  constructor(memory: StatsMemory, merger: HistogramMerger) {
    this.#memory = memory;
    this.#merger = merger;
  }

  /** Every scope, once. */
  *all(): Generator<KnownScope, void> {
    for (const scopes of this.#scopes.values()) yield* scopes;
  }

  /** The scopes with that prefix. */
  under(prefix: string): readonly KnownScope[] {
    return this.#scopes.get(prefix) ?? [];
  }

  /** The scope of this layout under the prefix, new or with one more reference. */
  add(prefix: string, layout: Layout, hidden: boolean): ScopeRef {
    const id = this.#layoutId(layout);
    const beside = this.#scopes.get(prefix);
    const same = beside?.find((scope) => scope.ref.layout === id);
    if (same !== undefined) {
      same.references++;
      return same.ref;
    }
    for (const other of beside ?? []) refuseSharedNames(prefix, layout, other.layout.layout);
    const known = this.#layouts[id]!;
    const { chunk, base } = known.freeBlocks.pop() ?? this.#memory.newBlock(layout.slots, known.histograms.length);
    const ref: ScopeRef = { prefix, layout: id, chunk, base };
    let place: number;
    try {
      place = this.#writeRecord(ref, hidden);
    } catch (error) {
      known.freeBlocks.push(ref);
      throw error;
    }
    const scope: KnownScope = {
      ref,
      layout: known,
      place,
      merged: known.histograms.map(() => new MergedHistogram()),
      references: 1,
    };
    if (beside === undefined) this.#scopes.set(prefix, [scope]);
    else beside.push(scope);
    this.size += layout.entries.length;
    this.#memory.note(0, Control.Names);
    return ref;
  }

  /** One reference less; true when the prefix has no scope any more. */
  remove(ref: ScopeRef): boolean {
    const beside = this.#scopes.get(ref.prefix);
    const scope = beside?.find((known) => known.ref.layout === ref.layout);
    if (beside === undefined || scope === undefined) throw new Error(`no stats scope "${ref.prefix}" to remove`);
    if (--scope.references > 0) return false;
    beside.splice(beside.indexOf(scope), 1);
    if (beside.length === 0) this.#scopes.delete(ref.prefix);
    this.#memory.own.range.free(scope.place);
    this.#clear(scope);
    scope.layout.freeBlocks.push(scope.ref);
    this.size -= scope.layout.layout.entries.length;
    this.#memory.note(0, Control.Removed);
    return beside.length === 0;
  }

  #layoutId(layout: Layout): number {
    let id = this.#layoutIds.get(layout);
    if (id === undefined) {
      id = this.#layouts.length;
      this.#layoutIds.set(layout, id);
      this.#layouts.push(knownLayout(layout));
      this.layoutEntries.push(layout.entries);
    }
    return id;
  }

  #writeRecord(ref: ScopeRef, hidden: boolean): number {
    const own = this.#memory.own.range;
    const bytes = Buffer.byteLength(ref.prefix);
    const place = this.#memory.newRecord(SCOPE_TEXT + ((bytes + 7) >> 3), RecordType.Scope);
    own.setWord(place, ScopeRecord.Layout, ref.layout);
    own.setWord(place, ScopeRecord.Flags, hidden ? ScopeFlag.Hidden : 0);
    own.setWord(place, ScopeRecord.Chunk, ref.chunk);
    own.setWord(place, ScopeRecord.Base, ref.base);
    own.setWord(place, ScopeRecord.PrefixBytes, bytes);
    own.setText(place, SCOPE_TEXT, 0, ref.prefix);
    own.commit(place);
    return place;
  }

  /** Zeroes a block for the next scope of the layout. */
  #clear({ ref, layout, merged }: KnownScope): void {
    const memory = this.#memory;
    clearBlock(memory, ref, layout);
    const texts = layout.texts.map((at) => memory.view(ref, at)).filter((place) => place !== 0);
    // Before the records that readers find there are free.
    for (const at of [...layout.counters, ...layout.histograms, ...layout.texts]) memory.setView(ref, at, 0);
    for (const histogram of merged) this.#merger.drop(histogram);
    for (const text of texts) memory.own.range.free(text);
  }
}

function knownLayout(layout: Layout): KnownLayout {
  const slotsOf = (kind: Kind) => layout.entries.filter((entry) => entry.kind === kind).map((entry) => entry.at);
  return {
    layout,
    counters: slotsOf(Kind.Counter),
    gauges: slotsOf(Kind.Gauge),
    texts: slotsOf(Kind.Text),
    histograms: slotsOf(Kind.Histogram),
    freeBlocks: [],
  };
}

function refuseSharedNames(prefix: string, layout: Layout, other: Layout): void {
  const shared = layout.entries.find((entry) => Object.hasOwn(other.at, entry.name));
  if (shared === undefined) return;
  throw new Error(
    `two layouts of the stats scope "${prefix}" have a stat "${shared.name}": one of them must leave it out`,
  );
}
