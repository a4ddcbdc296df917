// Runtime on the primary: the layers, their sources of change, and the changed values.

import { BatonError } from '../common/errors/errors.js';
import { shownName } from '../common/text/shown.js';
import type { LayeredRuntime as LayeredRuntimeConfig, RuntimeLayer, Struct } from '../config/generated/api.js';
import { getLogger } from '../log/logger.js';
import { RuntimeStats } from '../stats/layouts/runtime.js';
import type { Scope } from '../stats/thread-stats.js';
import { type AdminEntries, AdminLayer } from './admin-layer.js';
import { DiskReading, type DiskSource } from './disk-reading.js';
import { type Layer, staticLayer } from './layer.js';
import { RootWatch, rootIdentity } from './root-watch.js';
import { Runtime } from './runtime.js';
import type { RuntimeChange } from './snapshot.js';
import { isSameValue, type RuntimeValue } from './value.js';

const logger = getLogger('runtime');

export interface LayeredRuntimeOptions {
  /** The checked field layered_runtime; undefined: there are no layers. */
  readonly config: LayeredRuntimeConfig | undefined;
  /** For disk layers with append_service_cluster. */
  readonly serviceCluster: string;
  /** Scope `runtime.` */
  readonly stats: Scope;
  /** Called after each update of the values. */
  changed(change: RuntimeChange): void;
}

export class LayeredRuntime {
  /** The values, for the primary's own code. */
  readonly runtime = new Runtime();
  readonly #options: LayeredRuntimeOptions;
  #slots: readonly Slot[];
  readonly #disks: readonly DiskSlot[];
  readonly #admin: AdminLayer | undefined;
  /** Identities of the roots of disk layers, taken before the first reading. */
  readonly #roots: ReadonlyMap<string, string>;
  #watches: RootWatch[] = [];
  #reading: DiskReading | undefined;
  #layers: readonly Layer[] = [];
  #sortedKeys: readonly string[] | undefined;

  /** Loads all layers. A layer that cannot be loaded is skipped and counted; nothing throws. */
  constructor(options: LayeredRuntimeOptions) {
    this.#options = options;
    this.#slots = layersOf(options.config).map((layer) => createSlot(layer, options.serviceCluster));
    this.#disks = this.#slots.filter((slot) => slot instanceof DiskSlot);
    this.#admin = this.#slots.find((slot) => slot instanceof AdminSlot)?.layer;
    this.#roots = new Map(this.#disks.map(({ root }) => [root, rootIdentity(root)]));
    new DiskReading(this.#disks, () => this.#replaceLayers()).finish();
  }

  /** The current layers, lowest first. */
  get layers(): readonly Layer[] {
    return this.#layers;
  }

  /** Returns the sorted keys that have a value, computed in steps. */
  *keysInSteps(): Generator<void, readonly string[]> {
    if (this.#sortedKeys !== undefined) return this.#sortedKeys;
    const { version } = this.runtime;
    const keys = yield* sortedInSteps([...this.runtime.values.keys()]);
    if (version === this.runtime.version) this.#sortedKeys = keys;
    return keys;
  }

  /** Watches the disk layers, and detects changes since the constructor ran. Throws a BatonError if they cannot be watched. */
  watch(): void {
    for (const [root, identity] of this.#roots) {
      this.#watches.push(new RootWatch(root, () => this.#diskChanged()));
      if (rootIdentity(root) !== identity) this.#diskChanged();
    }
  }

  /**
   * Sets values of the admin layer. Returns false, and changes nothing, if there is no admin layer. Throws a BatonError
   * RUNTIME_LAYER if the layer would exceed its limits.
   */
  modify(entries: AdminEntries): boolean {
    if (this.#admin === undefined) return false;
    this.#admin.set(entries);
    this.#options.stats.set(RuntimeStats.at.admin_overrides_active, this.#admin.values.size > 0 ? 1 : 0);
    this.#options.changed(this.#update(entries.map(([key]) => key)));
    return true;
  }

  /** Sets the values of a layer from a management server. */
  setLayer(name: string, values: Struct): void {
    const slot = this.#slots.find((each) => each instanceof RtdsSlot && each.layer.name === name);
    if (!(slot instanceof RtdsSlot)) throw new BatonError('INTERNAL', `runtime has no rtds_layer '${name}'`);
    slot.layer = staticLayer(name, values);
    this.#options.changed(this.#replaceLayers());
  }

  /**
   * Replaces the layers. Static layers are rebuilt. All other layers must be the same as before, in the same order, and keep
   * their values.
   */
  replaceStaticLayers(layers: readonly RuntimeLayer[]): void {
    const kept = this.#slots.filter((slot) => !(slot instanceof StaticSlot)).values();
    this.#slots = layers.map((layer) =>
      layer.static_layer === undefined ? kept.next().value! : new StaticSlot(layer.name ?? '', layer.static_layer),
    );
    this.#options.changed(this.#replaceLayers());
  }

  close(): void {
    this.#reading?.cancel();
    for (const watch of this.#watches) watch.close();
    this.#watches = [];
  }

  #diskChanged(): void {
    this.#reading ??= new DiskReading(this.#disks, () => {
      this.#reading = undefined;
      const change = this.#replaceLayers();
      logger.info(`runtime reloaded from disk: ${this.runtime.values.size} key(s)`);
      this.#options.changed(change);
    });
    this.#reading.begin();
  }

  /** Applies the current layers of the slots. */
  #replaceLayers(): RuntimeChange {
    const before = this.#layers;
    this.#layers = this.#slots.flatMap((slot) => slot.layer ?? []);
    const keys = new Set<string>();
    for (const layers of [before, this.#layers]) {
      for (const layer of layers) {
        // Layers that are in both lists have kept their order.
        if (before.includes(layer) && this.#layers.includes(layer)) continue;
        for (const key of layer.values.keys()) keys.add(key);
      }
    }
    return this.#update(keys);
  }

  /** Recalculates the values of these keys. The cost depends on the number of keys only. */
  #update(keys: Iterable<string>): RuntimeChange {
    const { values, version } = this.runtime;
    const entries: [string, RuntimeValue | undefined][] = [];
    for (const key of keys) {
      const value = this.#valueOf(key);
      if (isSameValue(values.get(key), value)) continue;
      if (value === undefined || !values.has(key)) this.#sortedKeys = undefined;
      entries.push([key, value]);
    }
    const change = { version: version + 1, entries };
    this.runtime.change(change);
    this.#count(values.size);
    return change;
  }

  /** Returns the value of the topmost layer. An empty value hides no value of a lower layer. */
  #valueOf(key: string): RuntimeValue | undefined {
    let found: RuntimeValue | undefined;
    for (const { values } of this.#layers) {
      const value = values.get(key);
      if (value !== undefined && (found === undefined || value.text !== '')) found = value;
    }
    return found;
  }

  #count(keys: number): void {
    const { stats } = this.#options;
    const { at } = RuntimeStats;
    stats.set(at.num_keys, keys);
    stats.set(at.num_layers, this.#layers.length);
    stats.increment(this.#disks.some((disk) => disk.hasFailed) ? at.load_error : at.load_success);
    // Historically, these names refer to a second tree over the first one.
    const loaded = this.#disks.filter((disk) => disk.layer !== undefined).length;
    stats.increment(loaded > 1 ? at.override_dir_exists : at.override_dir_not_exists);
  }
}

/** Keys sorted per step, some milliseconds' work. */
const SORTED_PER_STEP = 5000;

function* sortedInSteps(keys: string[]): Generator<void, string[]> {
  const sorted: string[] = [];
  for (let from = 0; from < keys.length; from += SORTED_PER_STEP) {
    for (const key of keys.slice(from, from + SORTED_PER_STEP).sort()) sorted.push(key);
    yield;
  }
  // The engine's sort merges sorted runs.
  return sorted.sort();
}

/** The position of a layer. The layer may be missing, and is replaced when its source changes. */
interface Slot {
  readonly layer: Layer | undefined;
}

const ADMIN_ONLY: RuntimeLayer = { name: '', admin_layer: {} };

/** Returns the layers. A layered_runtime without layers gets an admin layer (FACTS §2.13). */
export function layersOf(config: LayeredRuntimeConfig | undefined): readonly RuntimeLayer[] {
  const { layers = [] } = config ?? {};
  return layers.length > 0 || config === undefined ? layers : [ADMIN_ONLY];
}

function createSlot(layer: RuntimeLayer, serviceCluster: string): Slot {
  const name = layer.name ?? '';
  if (layer.static_layer !== undefined) return new StaticSlot(name, layer.static_layer);
  if (layer.admin_layer !== undefined) return new AdminSlot(name);
  if (layer.rtds_layer !== undefined) return new RtdsSlot(name);
  const { symlink_root: root = '', subdirectory = '', append_service_cluster: appends } = layer.disk_layer ?? {};
  return new DiskSlot(name, root, `${root}/${subdirectory}${appends ? `/${serviceCluster}` : ''}`);
}

class StaticSlot implements Slot {
  readonly layer: Layer;

  constructor(name: string, struct: Struct) {
    this.layer = staticLayer(name, struct);
  }
}

/** Empty until the management server sends its values. */
class RtdsSlot implements Slot {
  layer: Layer;

  constructor(name: string) {
    this.layer = { name, values: new Map() };
  }
}

class AdminSlot implements Slot {
  readonly layer: AdminLayer;

  constructor(name: string) {
    this.layer = new AdminLayer(name);
  }
}

class DiskSlot implements Slot, DiskSource {
  readonly name: string;
  readonly root: string;
  readonly directory: string;
  /** The directory exists but could not be loaded. */
  hasFailed = false;
  layer: Layer | undefined;

  constructor(name: string, root: string, directory: string) {
    this.name = name;
    this.root = root;
    this.directory = directory;
  }

  loaded(layer: Layer | undefined, failure: string | undefined): void {
    this.layer = layer;
    this.hasFailed = failure !== undefined;
    if (this.hasFailed) logger.warning(`runtime layer '${shownName(this.name)}' is skipped: ${failure}`);
  }
}
