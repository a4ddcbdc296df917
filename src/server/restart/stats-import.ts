// What a parent process has counted, added to the stats of this one.
//
// A counter goes on from where the parent's stood; what its stats sinks were given is not given to this one's again. A gauge
// has the parent's value on top of its own until the parent ends. What this process knows no scope for is shown until then
// too, so that the last requests of a cluster that is gone are counted; it goes away with the parent.

import type { StatsPiece } from '../../restart/messages.js';
import { defineLayout, Kind } from '../../stats/layout.js';
import type { StatsStore } from '../../stats/store.js';
import type { ScopeRef } from '../../stats/thread-stats.js';
import { NO_HOLDINGS, type ProcessHoldings } from '../stats/server-stats.js';

/** Keeps names of a scope that only the parent has. */
const NO_STATS = defineLayout({});

interface ImportedGauge {
  readonly add: (change: number) => void;
  value: number;
  /** The last answer of the parent had it. */
  isMentioned: boolean;
}

export class StatsImport {
  /** What the parent takes now. */
  holdings: ProcessHoldings = NO_HOLDINGS;
  readonly #store: StatsStore;
  readonly #credit: (name: string, amount: number) => void;
  readonly #gauges = new Map<string, ImportedGauge>();
  readonly #ofParent = new Map<string, ScopeRef>();
  #hasEnded = false;

  /** `credit` is told what stats sinks have been given already. */
  constructor(store: StatsStore, credit: (name: string, amount: number) => void) {
    this.#store = store;
    this.#credit = credit;
  }

  /** What a gauge of that full name has of the parent's. */
  shareOf(name: string): number {
    return this.#gauges.get(name)?.value ?? 0;
  }

  add({ sections, memoryAllocated, connections, isLast }: StatsPiece): void {
    // Names need memory, which is given in steps.
    this.#store.reserve();
    for (const { prefix, counters, deltas, flushed, gauges, values } of sections) {
      this.#follow(prefix);
      counters.forEach((name, i) => {
        this.#adder(prefix, name, Kind.Counter)?.(deltas[i]!);
        if (flushed[i]! > 0) this.#credit(prefix + name, flushed[i]!);
      });
      gauges.forEach((name, i) => {
        this.#setGauge(prefix, name, values[i]!);
      });
    }
    this.holdings = { memoryAllocated, connections };
    if (!isLast) return;
    for (const gauge of this.#gauges.values()) {
      if (!gauge.isMentioned) setGauge(gauge, 0);
      gauge.isMentioned = false;
    }
  }

  /** The parent is gone, and what it held with it. */
  end(): void {
    this.holdings = NO_HOLDINGS;
    for (const gauge of this.#gauges.values()) setGauge(gauge, 0);
    this.#gauges.clear();
    this.#hasEnded = true;
  }

  /** A flush has been given to sinks: what only the parent had is no longer needed when it is gone. */
  flushed(): void {
    if (!this.#hasEnded || this.#ofParent.size === 0) return;
    for (const ref of this.#ofParent.values()) this.#store.removeScope(ref);
    this.#ofParent.clear();
  }

  /** Names belong to a scope: one that only the parent has is made for as long as the parent lives. */
  #follow(prefix: string): void {
    if (this.#store.scopesUnder(prefix).length > 0) return;
    this.#ofParent.set(prefix, this.#store.addScope(prefix, NO_STATS));
  }

  #setGauge(prefix: string, name: string, value: number): void {
    let gauge = this.#gauges.get(prefix + name);
    if (gauge === undefined) {
      const add = this.#adder(prefix, name, Kind.Gauge);
      if (add === undefined) return;
      this.#gauges.set(prefix + name, (gauge = { add, value: 0, isMentioned: true }));
    }
    gauge.isMentioned = true;
    setGauge(gauge, value);
  }

  /** Adds to a stat of this process; undefined when it has the name for another kind. */
  #adder(prefix: string, name: string, kind: Kind): ((change: number) => void) | undefined {
    for (const { ref, layout } of this.#store.scopesUnder(prefix)) {
      const entry = layout.entries.find((each) => each.name === name);
      if (entry === undefined) continue;
      if (entry.kind !== kind) return undefined;
      const scope = this.#store.scope(ref);
      return (change) => (change < 0 ? scope.subtract(entry.at, -change) : scope.add(entry.at, change));
    }
    try {
      const { own } = this.#store;
      if (kind === Kind.Counter) {
        const counter = own.dynamicCounter(prefix, name);
        return (change) => counter.add(change);
      }
      const gauge = own.dynamicGauge(prefix, name);
      let sum = 0;
      return (change) => gauge.set((sum += change));
    } catch {
      // The name exists with another kind here: the two say different things.
      return undefined;
    }
  }
}

function setGauge(gauge: ImportedGauge, value: number): void {
  if (value !== gauge.value) gauge.add(value - gauge.value);
  gauge.value = value;
}
