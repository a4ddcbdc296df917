// Compares two configurations. The result has a description for operators and a plan of what to do.

import type { ConfigDifference, FieldChange, ResourceChange } from '../../../admin/config-reload/reload-view.js';
import type { Bootstrap, Cluster, Listener, RuntimeLayer } from '../../../config/generated/api.js';
import type { Path } from '../../../config/text/path.js';
import { addressText } from '../../../io/addresses/address.js';
import { listenerAddress } from '../../listeners/version/listen-sockets.js';
import { fieldChanges, part, type Shown } from './field-changes.js';
import { at, compareLayers, compareListeners, compareNamed, nameOf, pairs } from './resource-changes.js';

/** A bootstrap in the loader's canonical form, with the complete node. */
export interface Configuration {
  readonly bootstrap: Bootstrap;
  /** The same without secrets. */
  readonly shown: Bootstrap;
}

/** The steps from one configuration to another. */
export interface ReloadPlan {
  /** New clusters, and new versions of present ones. */
  readonly clusters: readonly Cluster[];
  readonly removedClusters: readonly string[];
  readonly listeners: readonly PlannedListener[];
  /** Indexes in the old list. */
  readonly removedListeners: readonly number[];
  /** Listeners of which only inline route configurations have changed. */
  readonly routes: readonly PlannedListener[];
  /** Indexes of remaining listeners: from the old list to the new one. */
  readonly places: ReadonlyMap<number, number>;
  /** All layers, of which only static ones differ; undefined when runtime values stay as they are. */
  readonly runtime: { readonly before: readonly RuntimeLayer[]; readonly after: readonly RuntimeLayer[] } | undefined;
}

/** The planned version of a listener. */
export interface PlannedListener {
  /** Index in the old list; undefined for a new listener. */
  readonly before: number | undefined;
  /** Index in the new list. */
  readonly number: number;
  readonly config: Listener;
  /** The same without secrets. */
  readonly shown: Listener;
}

export interface Comparison {
  readonly difference: ConfigDifference;
  readonly plan: ReloadPlan;
  /** The configuration that runs after the plan: fields that need a restart keep their old values. */
  readonly result: Configuration;
}

export function compareConfigurations(before: Configuration, after: Configuration): Comparison {
  const [one, other] = [whole(before), whole(after)];
  const changes: ResourceChange[] = [];
  const clusters = pairs(clusterNames(before), clusterNames(after));
  const ofClusters = compareNamed('cluster', clusters, at(one, CLUSTERS), at(other, CLUSTERS), changes);
  const listeners = pairs(listenerNames(before), listenerNames(after));
  const ofListeners = compareListeners(listeners, at(one, LISTENERS), at(other, LISTENERS), changes);
  const layers = compareLayers(one, other, changes);
  const restart = fixedChanges(one, other, layers.canChange);
  const nextClusters = after.bootstrap.static_resources?.clusters ?? [];
  const formerPlaces = new Map(listeners.common.map((pair) => [pair.after, pair.before]));
  const planned = (number: number): PlannedListener => ({
    before: formerPlaces.get(number),
    number,
    config: after.bootstrap.static_resources!.listeners![number]!,
    shown: after.shown.static_resources!.listeners![number]!,
  });
  return {
    difference: {
      changes,
      unchanged: {
        cluster: ofClusters.unchanged,
        listener: ofListeners.unchanged,
        'route configuration': ofListeners.unchangedRoutes,
        'runtime layer': layers.unchanged,
      },
      restart,
    },
    plan: {
      clusters: [...clusters.added, ...ofClusters.changed].map((index) => nextClusters[index]!),
      removedClusters: clusters.removed.map((index) => before.bootstrap.static_resources!.clusters![index]!.name!),
      listeners: [...listeners.added, ...ofListeners.changed].map(planned),
      removedListeners: listeners.removed,
      routes: ofListeners.routes.map(planned),
      places: new Map(listeners.common.map((pair) => [pair.before, pair.after])),
      runtime: layers.change,
    },
    result: restart.length === 0 ? after : withoutRestart(before, after, layers.change !== undefined),
  };
}

const CLUSTERS: Path = ['static_resources', 'clusters'];
const LISTENERS: Path = ['static_resources', 'listeners'];

function whole({ bootstrap, shown }: Configuration): Shown {
  return { path: [], value: bootstrap, shown };
}

/** Returns changes that take effect only after a restart. */
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

/** Returns `after`, with the old values of fields that need a restart. */
function withoutRestart(before: Configuration, after: Configuration, replacesLayers: boolean): Configuration {
  return {
    bootstrap: merged(before.bootstrap, after.bootstrap, replacesLayers),
    shown: merged(before.shown, after.shown, replacesLayers),
  };
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

/** Listeners without a name are identified by their address. */
function listenerNames({ bootstrap }: Configuration): string[] {
  const seen = new Map<string, number>();
  return (bootstrap.static_resources?.listeners ?? []).map((listener) => {
    if (listener.name) return listener.name;
    const address = addressText(listenerAddress(listener));
    const count = (seen.get(address) ?? 0) + 1;
    seen.set(address, count);
    return count === 1 ? `without a name at ${address}` : `without a name at ${address}, number ${count}`;
  });
}
