// Adds a parent process's stats to those of this one.
//
// A counter continues the parent's; what the parent's stats sinks have received is not flushed again here. A gauge includes the
// parent's value until the parent ends. Stats without a scope in this process are shown until then too, so that the last requests
// of a removed cluster count; they are removed with the parent. A scope that is added later, for example for a discovered
// cluster, takes over the imported stats with its names.

import type { StatsPiece } from '../../restart/messages.js';
import { defineLayout, Kind, type Layout, type StatEntry } from '../../stats/layout.js';
import { Pass } from '../../stats/read/section.js';
import type { StatsStore } from '../../stats/store.js';
import type { ScopeRef } from '../../stats/thread-stats.js';
import type { Primary } from '../primary.js';
import type { FlushSchedule } from '../stats/flush-schedule.js';
import { NO_HOLDINGS, type ProcessHoldings } from '../stats/server-stats.js';
import type { TakeOver } from './take-over.js';

/** For scopes that keep names only the parent has. */
const NO_STATS = defineLayout({});

interface ImportedGauge {
  readonly prefix: string;
  readonly name: string;
  value: number;
  /** The parent's latest answer contained it. */
  isMentioned: boolean;
}

export class StatsImport {
  /** What the parent holds now. */
  holdings: ProcessHoldings = NO_HOLDINGS;
  readonly #store: StatsStore;
  readonly #takeOver: TakeOver;
  readonly #flushes: FlushSchedule;
  readonly #gauges = new Map<string, ImportedGauge>();
  readonly #ofParent = new Map<string, ScopeRef>();
  /** Names without a place in any scope, by prefix. */
  readonly #unscoped = new Map<string, Set<string>>();
  #hasEnded = false;

  constructor({ store, takeOver }: Primary, flushes: FlushSchedule) {
    this.#store = store;
    this.#takeOver = takeOver;
    this.#flushes = flushes;
  }

  /** Returns the parent's share of the gauge with that full name. */
  shareOf(name: string): number {
    return this.#gauges.get(name)?.value ?? 0;
  }

  add({ sections, memoryAllocated, connections, isLast }: StatsPiece): void {
    // New names need memory, which is allocated in steps.
    this.#store.reserve();
    this.#store.scopeAdded = (ref, layout) => this.#adopt(ref, layout);
    for (const { prefix, counters, deltas, flushed, gauges, values } of sections) {
      this.#ensureScope(prefix);
      counters.forEach((name, i) => {
        this.#addToCounter(prefix, name, deltas[i]!);
        if (flushed[i]! > 0) this.#flushes.sinks.credit(prefix + name, flushed[i]!);
      });
      gauges.forEach((name, i) => {
        this.#setGauge(prefix, name, values[i]!);
      });
    }
    this.holdings = { memoryAllocated, connections };
    if (!isLast) return;
    for (const gauge of this.#gauges.values()) {
      if (!gauge.isMentioned) this.#changeGauge(gauge, 0);
      gauge.isMentioned = false;
    }
  }

  /** Called when the parent has ended, and with it all that it held. */
  end(): void {
    this.holdings = NO_HOLDINGS;
    for (const gauge of this.#gauges.values()) this.#changeGauge(gauge, 0);
    this.#gauges.clear();
    this.#hasEnded = true;
  }

  /** Called after a flush to the sinks: once the parent has ended, stats that only it had are removed. */
  flushed(): void {
    if (!this.#hasEnded || this.#ofParent.size === 0) return;
    for (const [prefix, ref] of this.#ofParent) {
      this.#store.removeScope(ref);
      if (this.#store.scopesUnder(prefix).length === 0) this.#unscoped.delete(prefix);
    }
    this.#ofParent.clear();
  }

  /**
   * Adds a scope for a prefix that only the parent has, for the parent's lifetime. Names outside any scope would be permanent.
   */
  #ensureScope(prefix: string): void {
    if (prefix === '' || this.#store.scopesUnder(prefix).length > 0) return;
    this.#ofParent.set(prefix, this.#store.addScope(prefix, NO_STATS));
  }

  #addToCounter(prefix: string, name: string, amount: number): void {
    const place = this.#findEntry(prefix, name);
    if (place === undefined)
      this.#writeUnscoped(prefix, name, () => this.#store.own.dynamicCounter(prefix, name).add(amount));
    else if (place.entry.kind === Kind.Counter) this.#store.scope(place.ref).add(place.entry.at, amount);
  }

  #setGauge(prefix: string, name: string, value: number): void {
    const full = prefix + name;
    let gauge = this.#gauges.get(full);
    if (gauge === undefined) this.#gauges.set(full, (gauge = { prefix, name, value: 0, isMentioned: true }));
    gauge.isMentioned = true;
    this.#changeGauge(gauge, value);
  }

  #changeGauge(gauge: ImportedGauge, value: number): void {
    const { prefix, name } = gauge;
    const change = value - gauge.value;
    if (change === 0) return;
    gauge.value = value;
    const place = this.#findEntry(prefix, name);
    if (place === undefined) {
      this.#writeUnscoped(prefix, name, () => this.#store.own.dynamicGauge(prefix, name).set(value));
      return;
    }
    const { entry, ref } = place;
    if (entry.kind !== Kind.Gauge) return;
    const scope = this.#store.scope(ref);
    if (change < 0) scope.subtract(entry.at, -change);
    else scope.add(entry.at, change);
  }

  /** Returns the stat's entry in a scope of this process; undefined when no scope has it. */
  #findEntry(prefix: string, name: string): { readonly ref: ScopeRef; readonly entry: StatEntry } | undefined {
    for (const { ref, layout } of this.#store.scopesUnder(prefix)) {
      const entry = layout.entries.find((each) => each.name === name);
      if (entry !== undefined) return { ref, entry };
    }
    return undefined;
  }

  #writeUnscoped(prefix: string, name: string, write: () => void): void {
    try {
      write();
    } catch {
      // The name has another kind here, so the two stats are unrelated.
      return;
    }
    const names = this.#unscoped.get(prefix);
    if (names === undefined) this.#unscoped.set(prefix, new Set([name]));
    else names.add(name);
  }

  /**
   * Called when a scope is added: moves unscoped stats with its names into it. What the sinks have received is not flushed again.
   */
  #adopt(ref: ScopeRef, { entries }: Layout): void {
    const names = this.#unscoped.get(ref.prefix);
    if (names === undefined || this.#takeOver.isDone) return;
    const shown = this.#store
      .reader()
      .sections.find(({ parts, prefix }) => prefix === ref.prefix && parts !== undefined);
    for (const entry of entries) {
      if (!names.delete(entry.name)) continue;
      const index = shown?.tables[Pass.Values].indexOf(entry.name) ?? -1;
      const flushed = index < 0 ? undefined : this.#flushes.sinks.flushedAmount(shown!, index);
      if (flushed !== undefined && flushed > 0) this.#flushes.sinks.credit(ref.prefix + entry.name, flushed);
      this.#store.adoptName(ref, entry);
    }
  }
}
