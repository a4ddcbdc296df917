// Layouts of scopes: the names and kinds of their stats, and the slot of each in the scope's block.
//
// A layout is created at module load, identically in every thread, so slots are constants on hot paths. A counter, a
// histogram and a text readout take one slot. A gauge takes two, one for increments and one for decrements, so that "was
// ever changed" needs no flag.

/** The kind of a stat. Histograms record milliseconds unless the kind names another unit. */
export type StatKind =
  | 'counter'
  /** A gauge that includes the value of the parent process during a hot restart. */
  | 'gauge'
  /** A gauge of this process only: no value of a parent is imported. */
  | 'own_gauge'
  | 'histogram'
  | 'histogram_us'
  | 'histogram_bytes'
  /** Samples are the fraction times PERCENT_SCALE; readers divide by it. */
  | 'histogram_percent'
  /** Numbers without a unit. */
  | 'histogram_count'
  | 'text'
  /** A counter of a feature that Baton lacks: always 0, for alerts that expect the name. All those of a layout share their slots. */
  | 'no_counter'
  | 'no_gauge';

export type LayoutDefinition = Readonly<Record<string, StatKind>>;

export type CounterSlot = number & { readonly slotOf?: 'counter' };
export type GaugeSlot = number & { readonly slotOf?: 'gauge' };
export type HistogramSlot = number & { readonly slotOf?: 'histogram' };
export type TextSlot = number & { readonly slotOf?: 'text' };

export type SlotOf<K extends StatKind> = K extends 'no_counter' | 'no_gauge'
  ? never
  : K extends 'counter'
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

/** One stat of a layout, as plain data for other threads. */
export interface StatEntry {
  readonly name: string;
  readonly kind: Kind;
  readonly unit: Unit;
  /** Whether a gauge includes the parent process's value. */
  readonly imports: boolean;
  /** First slot in the block. */
  readonly at: number;
}

export interface Layout<D extends LayoutDefinition = LayoutDefinition> {
  /** The slot of every stat by name. */
  readonly at: { readonly [N in keyof D]: SlotOf<D[N]> };
  /** All stats in the order of their definition. */
  readonly entries: readonly StatEntry[];
  /** Number of slots of a block. */
  readonly slots: number;
}

/** A sample of a percent histogram is the fraction (0.25 for 25 %) times this. */
export const PERCENT_SCALE = 1_000_000;

/**
 * Returns the layout of a scope with these stats: `defineLayout({ downstream_cx_total: 'counter' }).at.downstream_cx_total`.
 */
export function defineLayout<const D extends LayoutDefinition>(definition: D): Layout<D> {
  const at: Record<string, number> = {};
  const entries: StatEntry[] = [];
  let slots = 0;
  /** The slots of all stats that are always 0, by kind. */
  const zeros = new Map<StatKind, number>();
  for (const [name, statKind] of Object.entries(definition)) {
    const kind = kindOf(statKind);
    const isZero = statKind === 'no_counter' || statKind === 'no_gauge';
    const place = zeros.get(statKind) ?? slots;
    if (!isZero) at[name] = place;
    entries.push({ name, kind, unit: unitOf(statKind), imports: statKind === 'gauge', at: place });
    if (place !== slots) continue;
    if (isZero) zeros.set(statKind, place);
    slots += kind === Kind.Gauge ? 2 : 1;
  }
  // A copy has V8's fast properties, which an object built property by property does not: a slot lookup then costs nothing.
  return { at: Object.freeze({ ...at }) as Layout<D>['at'], entries, slots };
}

function kindOf(statKind: StatKind): Kind {
  switch (statKind) {
    case 'counter':
    case 'no_counter':
      return Kind.Counter;
    case 'gauge':
    case 'own_gauge':
    case 'no_gauge':
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
