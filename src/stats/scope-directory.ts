// The scopes of a store: their prefixes, the blocks they use and release, and their records for readers.

import { type HistogramMerger, MergedHistogram } from './histograms/merged-histogram.js';
import { Kind, type Layout, type StatEntry } from './layout.js';
import { type BlockSlots, clearBlock } from './memory/foreign-writes.js';
import { Control, RecordType, SCOPE_TEXT, ScopeFlag, ScopeRecord } from './memory/format.js';
import type { Block, StatsMemory } from './memory/memory.js';
import type { ScopeRef } from './thread-stats.js';

/** A layout in a store, with its slots by kind. */
export interface KnownLayout extends BlockSlots {
  readonly layout: Layout;
  readonly texts: readonly number[];
  /** Blocks are reused only by scopes of the same layout, so that their histograms fit. */
  readonly freeBlocks: Block[];
}

export interface KnownScope {
  readonly ref: ScopeRef;
  readonly layout: KnownLayout;
  /** The scope's record in the directory. */
  place: number;
  /** The scope's histograms, in the order of the layout. */
  readonly merged: readonly MergedHistogram[];
  references: number;
  /** Added as hidden: visible while `showings` is above 0. */
  readonly isHidden: boolean;
  showings: number;
}

export class ScopeDirectory {
  /** The entries of every layout by its number, for readers. */
  readonly layoutEntries: (readonly StatEntry[])[] = [];
  /** Number of stats of all scopes. */
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

  /** Yields every scope once. */
  *all(): Generator<KnownScope, void> {
    for (const scopes of this.#scopes.values()) yield* scopes;
  }

  /** Returns the scopes with exactly this prefix. */
  under(prefix: string): readonly KnownScope[] {
    return this.#scopes.get(prefix) ?? [];
  }

  /** Returns the scope of this layout under the prefix: a new one, or the existing one with one more reference. */
  add(prefix: string, layout: Layout, hidden: boolean): ScopeRef {
    const id = this.#layoutId(layout);
    const siblings = this.#scopes.get(prefix);
    const same = siblings?.find((scope) => scope.ref.layout === id);
    if (same !== undefined) {
      same.references++;
      return same.ref;
    }
    for (const other of siblings ?? []) refuseSharedNames(prefix, layout, other.layout.layout);
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
      isHidden: hidden,
      showings: 0,
    };
    if (siblings === undefined) this.#scopes.set(prefix, [scope]);
    else siblings.push(scope);
    this.size += layout.entries.length;
    this.#memory.increment(0, Control.Names);
    return ref;
  }

  /** Drops one reference. Returns whether the prefix has no scope left. */
  remove(ref: ScopeRef): boolean {
    const siblings = this.#scopes.get(ref.prefix);
    const scope = siblings?.find((known) => known.ref.layout === ref.layout);
    if (siblings === undefined || scope === undefined) throw new Error(`no stats scope "${ref.prefix}" to remove`);
    if (--scope.references > 0) return false;
    siblings.splice(siblings.indexOf(scope), 1);
    if (siblings.length === 0) this.#scopes.delete(ref.prefix);
    this.#memory.own.range.free(scope.place);
    this.#clear(scope);
    scope.layout.freeBlocks.push(scope.ref);
    this.size -= scope.layout.layout.entries.length;
    this.#memory.increment(0, Control.Removed);
    return siblings.length === 0;
  }

  /** See StatsStore.show(). */
  show(ref: ScopeRef): void {
    const scope = this.#known(ref);
    if (scope.isHidden && scope.showings === 0) this.#rewrite(scope, false);
    scope.showings++;
  }

  /** See StatsStore.hide(). */
  hide(ref: ScopeRef): void {
    const scope = this.#known(ref);
    if (--scope.showings > 0 || !scope.isHidden) return;
    try {
      this.#rewrite(scope, true);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
    }
  }

  #known(ref: ScopeRef): KnownScope {
    const scope = this.#scopes.get(ref.prefix)?.find((known) => known.ref.layout === ref.layout);
    if (scope === undefined) throw new Error(`no stats scope "${ref.prefix}"`);
    return scope;
  }

  /** Replaces the record: readers treat that as the removal of a scope and the addition of another with the same values. */
  #rewrite(scope: KnownScope, hidden: boolean): void {
    const place = this.#writeRecord(scope.ref, hidden);
    this.#memory.own.range.free(scope.place);
    scope.place = place;
    this.#memory.increment(0, Control.Names);
    this.#memory.increment(0, Control.Removed);
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
    // The view is cleared before the records that readers find through it are freed.
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
