// What a parent process has counted, added to the stats of this one.
//
// A counter goes on from where the parent's stood; what its stats sinks were given is not given to this one's again. A gauge
// has the parent's value on top of its own until the parent ends. What this process knows no scope for is shown until then
// too, so that the last requests of a cluster that is gone are counted; it goes away with the parent. A scope that comes
// later, as that of a cluster that is discovered, takes over what has been imported under its names.

import type { StatsPiece } from '../../restart/messages.js';
import { defineLayout, Kind, type Layout, type StatEntry } from '../../stats/layout.js';
import { Pass } from '../../stats/read/section.js';
import type { StatsStore } from '../../stats/store.js';
import type { ScopeRef } from '../../stats/thread-stats.js';
import type { Primary } from '../primary.js';
import type { FlushSchedule } from '../stats/flush-schedule.js';
import { NO_HOLDINGS, type ProcessHoldings } from '../stats/server-stats.js';
import type { TakeOver } from './take-over.js';

/** Keeps names of a scope that only the parent has. */
const NO_STATS = defineLayout({});

interface ImportedGauge {
  readonly prefix: string;
  readonly name: string;
  value: number;
  /** The last answer of the parent had it. */
  isMentioned: boolean;
}

export class StatsImport {
  /** What the parent takes now. */
  holdings: ProcessHoldings = NO_HOLDINGS;
  readonly #store: StatsStore;
  readonly #takeOver: TakeOver;
  readonly #flushes: FlushSchedule;
  readonly #gauges = new Map<string, ImportedGauge>();
  readonly #ofParent = new Map<string, ScopeRef>();
  /** Names for which no scope had a place, by prefix. */
  readonly #loose = new Map<string, Set<string>>();
  #hasEnded = false;

  constructor({ store, takeOver }: Primary, flushes: FlushSchedule) {
    this.#store = store;
    this.#takeOver = takeOver;
    this.#flushes = flushes;
  }

  /** What a gauge of that full name has of the parent's. */
  shareOf(name: string): number {
    return this.#gauges.get(name)?.value ?? 0;
  }

  add({ sections, memoryAllocated, connections, isLast }: StatsPiece): void {
    // Names need memory, which is given in steps.
    this.#store.reserve();
    this.#store.scopeAdded = (ref, layout) => this.#settle(ref, layout);
    for (const { prefix, counters, deltas, flushed, gauges, values } of sections) {
      this.#follow(prefix);
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

  /** The parent is gone, and what it held with it. */
  end(): void {
    this.holdings = NO_HOLDINGS;
    for (const gauge of this.#gauges.values()) this.#changeGauge(gauge, 0);
    this.#gauges.clear();
    this.#hasEnded = true;
  }

  /** A flush has been given to sinks: what only the parent had is no longer needed when it is gone. */
  flushed(): void {
    if (!this.#hasEnded || this.#ofParent.size === 0) return;
    for (const [prefix, ref] of this.#ofParent) {
      this.#store.removeScope(ref);
      if (this.#store.scopesUnder(prefix).length === 0) this.#loose.delete(prefix);
    }
    this.#ofParent.clear();
  }

  /** Names belong to a scope: one that only the parent has is made for as long as the parent lives. Those of no scope stay. */
  #follow(prefix: string): void {
    if (prefix === '' || this.#store.scopesUnder(prefix).length > 0) return;
    this.#ofParent.set(prefix, this.#store.addScope(prefix, NO_STATS));
  }

  #addToCounter(prefix: string, name: string, amount: number): void {
    const place = this.#placeOf(prefix, name);
    if (place === undefined)
      this.#nameLoosely(prefix, name, () => this.#store.own.dynamicCounter(prefix, name).add(amount));
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
    const place = this.#placeOf(prefix, name);
    if (place === undefined) {
      this.#nameLoosely(prefix, name, () => this.#store.own.dynamicGauge(prefix, name).set(value));
      return;
    }
    const { entry, ref } = place;
    if (entry.kind !== Kind.Gauge) return;
    const scope = this.#store.scope(ref);
    if (change < 0) scope.subtract(entry.at, -change);
    else scope.add(entry.at, change);
  }

  /** Where a scope of this process has the stat; undefined when none has it. */
  #placeOf(prefix: string, name: string): { readonly ref: ScopeRef; readonly entry: StatEntry } | undefined {
    for (const { ref, layout } of this.#store.scopesUnder(prefix)) {
      const entry = layout.entries.find((each) => each.name === name);
      if (entry !== undefined) return { ref, entry };
    }
    return undefined;
  }

  #nameLoosely(prefix: string, name: string, write: () => void): void {
    try {
      write();
    } catch {
      // The name exists with another kind here: the two say different things.
      return;
    }
    const names = this.#loose.get(prefix);
    if (names === undefined) this.#loose.set(prefix, new Set([name]));
    else names.add(name);
  }

  /** A scope has come that has some of the names. What sinks were given of them is not given again. */
  #settle(ref: ScopeRef, { entries }: Layout): void {
    const names = this.#loose.get(ref.prefix);
    if (names === undefined || this.#takeOver.isDone) return;
    const shown = this.#store
      .reader()
      .sections.find(({ parts, prefix }) => prefix === ref.prefix && parts !== undefined);
    for (const entry of entries) {
      if (!names.delete(entry.name)) continue;
      const index = shown?.tables[Pass.Values].indexOf(entry.name) ?? -1;
      const given = index < 0 ? undefined : this.#flushes.sinks.flushedAmount(shown!, index);
      if (given !== undefined && given > 0) this.#flushes.sinks.credit(ref.prefix + entry.name, given);
      this.#store.adoptName(ref, entry);
    }
  }
}
