// What a scope counts: names and kinds of its stats, and the slot of each inside the scope's block.
//
// A layout is made once, at module load, in every thread alike; slots are therefore plain constants on hot paths. A counter,
// a histogram and a text readout take one slot. A gauge takes two, one that only its increments and one that only its
// decrements touch, so that "was ever changed" needs no flag of its own.

/** What a layout says of one stat. Histograms count milliseconds unless the kind names another unit. */
export type StatKind =
  | 'counter'
  /** A gauge that takes over what the parent process of a hot restart still holds. */
  | 'gauge'
  /** A gauge that speaks of this process only: nothing is imported from a parent. */
  | 'own_gauge'
  | 'histogram'
  | 'histogram_us'
  | 'histogram_bytes'
  /** Samples are PERCENT_SCALE times the fraction; readers divide again. */
  | 'histogram_percent'
  /** Plain numbers without a unit. */
  | 'histogram_count'
  | 'text';

export type LayoutDefinition = Readonly<Record<string, StatKind>>;

export type CounterSlot = number & { readonly slotOf?: 'counter' };
export type GaugeSlot = number & { readonly slotOf?: 'gauge' };
export type HistogramSlot = number & { readonly slotOf?: 'histogram' };
export type TextSlot = number & { readonly slotOf?: 'text' };

export type SlotOf<K extends StatKind> = K extends 'counter'
  ? CounterSlot
  : K extends 'gauge' | 'own_gauge'
    ? GaugeSlot
    : K extends 'text'
      ? TextSlot
      : HistogramSlot;

export const enum Kind {
  Counter = 1,
  Gauge = 2,
  Histogram = 3,
  Text = 4,
}

export type Unit = 'none' | 'ms' | 'us' | 'bytes' | 'percent';

/** One stat of a layout; plain data that other threads get a copy of. */
export interface StatEntry {
  readonly name: string;
  readonly kind: Kind;
  readonly unit: Unit;
  /** Whether a gauge takes over a parent process's value. */
  readonly imports: boolean;
  /** First slot inside the block. */
  readonly at: number;
}

export interface Layout<D extends LayoutDefinition = LayoutDefinition> {
  /** Slot of every stat by name. */
  readonly at: { readonly [N in keyof D]: SlotOf<D[N]> };
  /** All stats in the order of their definition. */
  readonly entries: readonly StatEntry[];
  /** Slots of a block. */
  readonly slots: number;
}

/** A sample of a percent histogram is the fraction (0.25 for 25 %) times this. */
export const PERCENT_SCALE = 1_000_000;

/** The layout of a scope with these stats: `defineLayout({ downstream_cx_total: 'counter' }).at.downstream_cx_total`. */
export function defineLayout<const D extends LayoutDefinition>(definition: D): Layout<D> {
  const at: Record<string, number> = {};
  const entries: StatEntry[] = [];
  let slots = 0;
  for (const [name, statKind] of Object.entries(definition)) {
    const kind = kindOf(statKind);
    at[name] = slots;
    entries.push({ name, kind, unit: unitOf(statKind), imports: statKind === 'gauge', at: slots });
    slots += kind === Kind.Gauge ? 2 : 1;
  }
  // The copy has V8's fast properties, which an object filled name by name loses: a slot then costs nothing to look up.
  return { at: Object.freeze({ ...at }) as Layout<D>['at'], entries, slots };
}

function kindOf(statKind: StatKind): Kind {
  switch (statKind) {
    case 'counter':
      return Kind.Counter;
    case 'gauge':
    case 'own_gauge':
      return Kind.Gauge;
    case 'text':
      return Kind.Text;
    default:
      return Kind.Histogram;
  }
}

function unitOf(statKind: StatKind): Unit {
  switch (statKind) {
    case 'histogram':
      return 'ms';
    case 'histogram_us':
      return 'us';
    case 'histogram_bytes':
      return 'bytes';
    case 'histogram_percent':
      return 'percent';
    default:
      return 'none';
  }
}
