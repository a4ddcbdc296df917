// How two configurations differ: what a person is to know of it, and what is to be done.

import { isDeepStrictEqual } from 'node:util';
import type {
  ConfigDifference,
  FieldChange,
  ResourceChange,
  ResourceKind,
} from '../../admin/config-reload/reload-view.js';
import type { Bootstrap, Cluster, Listener, RuntimeLayer } from '../../config/generated/api.js';
import type { Path } from '../../config/text/path.js';
import { addressText } from '../../io/address.js';
import { layersOf } from '../../runtime/layered-runtime.js';
import { listenAddress } from '../listeners/listen-sockets.js';
import { fieldChanges, part, type Shown } from './field-changes.js';
import { inlineRoutes, without } from './inline-routes.js';

/** A bootstrap in canonical form, as the loader gives it, with the node that the command line makes of it. */
export interface Configuration {
  readonly bootstrap: Bootstrap;
  /** The same without what is secret. */
  readonly shown: Bootstrap;
}

/** What takes a server from one configuration to another. */
export interface ReloadPlan {
  /** New ones, and new versions of those that there are. */
  readonly clusters: readonly Cluster[];
  readonly removedClusters: readonly string[];
  readonly listeners: readonly PlannedListener[];
  /** Places of listeners in the list before. */
  readonly removedListeners: readonly number[];
  /** Listeners of which nothing but inline route configurations has changed. */
  readonly routes: readonly PlannedListener[];
  /** Places of listeners that stay, in the list before and after. */
  readonly places: ReadonlyMap<number, number>;
  /** All layers, of which only static ones are others; undefined: values of runtime stay as they are. */
  readonly runtime: { readonly before: readonly RuntimeLayer[]; readonly after: readonly RuntimeLayer[] } | undefined;
}

/** What becomes of a listener. */
export interface PlannedListener {
  /** Its place in the list before; undefined: it is new. */
  readonly before: number | undefined;
  /** In the list after. */
  readonly number: number;
  readonly config: Listener;
  /** The same without what is secret. */
  readonly shown: Listener;
}

export interface Comparison {
  readonly difference: ConfigDifference;
  readonly plan: ReloadPlan;
  /** What runs when the plan has been carried out: of fields that need a restart the old ones. */
  readonly result: Configuration;
}

export function compareConfigurations(before: Configuration, after: Configuration): Comparison {
  const [one, other] = [whole(before), whole(after)];
  const changes: ResourceChange[] = [];
  const clusters = pairs(clusterNames(before), clusterNames(after));
  const listeners = pairs(listenerNames(before), listenerNames(after));
  const clusterChanges = compareNamed('cluster', clusters, at(one, CLUSTERS), at(other, CLUSTERS), changes);
  const ofListeners = compareListeners(listeners, at(one, LISTENERS), at(other, LISTENERS), changes);
  const layers = layersOf(before.bootstrap.layered_runtime);
  const otherLayers = layersOf(after.bootstrap.layered_runtime);
  const canReplaceLayers = isDeepStrictEqual(layers.filter(isFixed), otherLayers.filter(isFixed));
  const runtimeChanges = canReplaceLayers
    ? compareNamed(
        'runtime layer',
        pairs(layers.map(nameOf), otherLayers.map(nameOf)),
        at(one, LAYERS),
        at(other, LAYERS),
        changes,
      )
    : { changed: [], unchanged: layers.length };
  const replacesLayers = canReplaceLayers && !isDeepStrictEqual(layers, otherLayers);
  if (replacesLayers) noteOrder(layers.map(nameOf), otherLayers.map(nameOf), changes);
  const restart = fixedChanges(one, other, canReplaceLayers);
  const { bootstrap: next } = after;
  const nextClusters = next.static_resources?.clusters ?? [];
  const formerPlaces = new Map(listeners.common.map((pair) => [pair.after, pair.before]));
  const planned = (number: number): PlannedListener => ({
    before: formerPlaces.get(number),
    number,
    config: next.static_resources!.listeners![number]!,
    shown: after.shown.static_resources!.listeners![number]!,
  });
  return {
    difference: {
      changes,
      unchanged: {
        cluster: clusterChanges.unchanged,
        listener: ofListeners.unchanged,
        'route configuration': ofListeners.unchangedRoutes,
        'runtime layer': runtimeChanges.unchanged,
      },
      restart,
    },
    plan: {
      clusters: [...clusters.added, ...clusterChanges.changed].map((index) => nextClusters[index]!),
      removedClusters: clusters.removed.map((index) => before.bootstrap.static_resources!.clusters![index]!.name!),
      listeners: [...listeners.added, ...ofListeners.changed].map(planned),
      removedListeners: listeners.removed,
      routes: ofListeners.routes.map(planned),
      places: new Map(listeners.common.map((pair) => [pair.before, pair.after])),
      runtime: replacesLayers ? { before: layers, after: otherLayers } : undefined,
    },
    result:
      restart.length === 0
        ? after
        : {
            bootstrap: merged(before.bootstrap, after.bootstrap, replacesLayers),
            shown: merged(before.shown, after.shown, replacesLayers),
          },
  };
}

const CLUSTERS: Path = ['static_resources', 'clusters'];
const LISTENERS: Path = ['static_resources', 'listeners'];
const LAYERS: Path = ['layered_runtime', 'layers'];

function whole({ bootstrap, shown }: Configuration): Shown {
  return { path: [], value: bootstrap, shown };
}

function at(top: Shown, path: Path): Shown {
  return path.reduce(part, top);
}

/** Positions in two lists by what belongs together. */
interface Pairs {
  readonly common: readonly { readonly name: string; readonly before: number; readonly after: number }[];
  readonly added: readonly number[];
  readonly removed: readonly number[];
  readonly names: readonly string[];
  readonly otherNames: readonly string[];
}

function pairs(names: readonly string[], otherNames: readonly string[]): Pairs {
  const places = new Map(names.map((name, index) => [name, index]));
  const others = new Set(otherNames);
  const common: { name: string; before: number; after: number }[] = [];
  const added: number[] = [];
  otherNames.forEach((name, after) => {
    const before = places.get(name);
    if (before === undefined) added.push(after);
    else common.push({ name, before, after });
  });
  const removed = names.flatMap((name, index) => (others.has(name) ? [] : [index]));
  return { common, added, removed, names, otherNames };
}

function noteComings(
  kind: ResourceKind,
  { added, names, otherNames, removed }: Pairs,
  changes: ResourceChange[],
): void {
  const none = { fields: [], fieldCount: 0 };
  for (const index of added) changes.push({ kind, name: otherNames[index]!, change: 'added', ...none });
  for (const index of removed) changes.push({ kind, name: names[index]!, change: 'removed', ...none });
}

function compareNamed(kind: ResourceKind, paired: Pairs, one: Shown, other: Shown, changes: ResourceChange[]) {
  noteComings(kind, paired, changes);
  const changed: number[] = [];
  for (const { after, before, name } of paired.common) {
    const { fieldCount, fields } = fieldChanges(part(one, before), part(other, after));
    if (fieldCount === 0) continue;
    changed.push(after);
    changes.push({ kind, name, change: 'changed', fields, fieldCount });
  }
  return { changed, unchanged: paired.common.length - changed.length };
}

/** The last layer that has a value wins. */
function noteOrder(names: readonly string[], otherNames: readonly string[], changes: ResourceChange[]): void {
  const before = names.filter((name) => otherNames.includes(name));
  const after = otherNames.filter((name) => names.includes(name));
  if (isDeepStrictEqual(before, after)) return;
  const fields = [{ path: 'layered_runtime.layers', before, after }];
  changes.push({ kind: 'runtime layer', name: 'their order', change: 'changed', fields, fieldCount: 1 });
}

/** Routes apart from the rest: `routes` are the listeners of which only they have changed. */
function compareListeners(paired: Pairs, one: Shown, other: Shown, changes: ResourceChange[]) {
  noteComings('listener', paired, changes);
  const changed: number[] = [];
  const routes: number[] = [];
  let unchangedRoutes = 0;
  for (const { after, before, name } of paired.common) {
    const [older, newer] = [part(one, before), part(other, after)];
    const places = inlineRoutes(older.value as Listener);
    const newPlaces = inlineRoutes(newer.value as Listener);
    const common = [...newPlaces].filter(([place]) => places.has(place));
    const rest = fieldChanges(
      less(
        older,
        common.map(([place]) => places.get(place)!.path),
      ),
      less(
        newer,
        common.map(([, { path }]) => path),
      ),
    );
    if (rest.fieldCount > 0) {
      changed.push(after);
      changes.push({ kind: 'listener', name, change: 'changed', fields: rest.fields, fieldCount: rest.fieldCount });
    }
    let changedRoutes = 0;
    for (const [place, { name: routeName, path }] of common) {
      const { fieldCount, fields } = fieldChanges(at(older, places.get(place)!.path), at(newer, path));
      if (fieldCount === 0) continue;
      changedRoutes++;
      const called = [name, ...(common.length > 1 ? [place] : []), routeName || 'without a name'].join('/');
      changes.push({ kind: 'route configuration', name: called, change: 'changed', fields, fieldCount });
    }
    unchangedRoutes += common.length - changedRoutes;
    if (rest.fieldCount === 0 && changedRoutes > 0) routes.push(after);
  }
  return { changed, routes, unchanged: paired.common.length - changed.length, unchangedRoutes };
}

function less({ path, shown, value }: Shown, paths: readonly Path[]): Shown {
  return { path, value: without(value as Listener, paths), shown: without(shown as Listener, paths) };
}

/** What stays as it is until a restart. */
function fixedChanges(one: Shown, other: Shown, withoutLayers: boolean): readonly FieldChange[] {
  const changeable = ['static_resources', ...(withoutLayers ? ['layered_runtime'] : [])];
  const rest = (side: Shown): Shown => ({
    ...side,
    value: omit(side.value, changeable),
    shown: omit(side.shown, changeable),
  });
  const ofResources = (side: Shown): Shown => {
    const resources = part(side, 'static_resources');
    const lists = ['clusters', 'listeners'];
    return { ...resources, value: omit(resources.value, lists), shown: omit(resources.shown, lists) };
  };
  return [...fieldChanges(rest(one), rest(other)).fields, ...fieldChanges(ofResources(one), ofResources(other)).fields];
}

function omit(value: unknown, names: readonly string[]): object {
  return Object.fromEntries(Object.entries((value ?? {}) as object).filter(([name]) => !names.includes(name)));
}

function merged(before: Bootstrap, after: Bootstrap, replacesLayers: boolean): Bootstrap {
  const { clusters, listeners } = after.static_resources ?? {};
  return {
    ...before,
    static_resources: { ...before.static_resources, clusters, listeners },
    ...(replacesLayers && { layered_runtime: after.layered_runtime }),
  };
}

function clusterNames({ bootstrap }: Configuration): string[] {
  return (bootstrap.static_resources?.clusters ?? []).map(nameOf);
}

/** A listener without a name is known by its address. */
function listenerNames({ bootstrap }: Configuration): string[] {
  const seen = new Map<string, number>();
  return (bootstrap.static_resources?.listeners ?? []).map((listener) => {
    if (listener.name) return listener.name;
    const address = addressText(listenAddress(listener.address));
    const count = (seen.get(address) ?? 0) + 1;
    seen.set(address, count);
    return count === 1 ? `without a name at ${address}` : `without a name at ${address}, number ${count}`;
  });
}

function nameOf({ name }: { readonly name?: string }): string {
  return name ?? '';
}

/** Files are watched, values were set: only values that stand in the configuration can be replaced. */
function isFixed({ static_layer }: RuntimeLayer): boolean {
  return static_layer === undefined;
}
