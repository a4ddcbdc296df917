// Compares lists of clusters, listeners and runtime layers. Descriptions for operators are added to `changes`.

import { isDeepStrictEqual } from 'node:util';
import type { ResourceChange, ResourceKind } from '../../../admin/config-reload/reload-view.js';
import type { Bootstrap, Listener, RuntimeLayer } from '../../../config/generated/api.js';
import type { Path } from '../../../config/text/path.js';
import { layersOf } from '../../../runtime/layered-runtime.js';
import { fieldChanges, part, type Shown } from './field-changes.js';
import { inlineRoutes, without } from './inline-routes.js';

/** Matching indexes in two lists. */
export interface Pairs {
  readonly common: readonly { readonly name: string; readonly before: number; readonly after: number }[];
  readonly added: readonly number[];
  readonly removed: readonly number[];
  readonly names: readonly string[];
  readonly otherNames: readonly string[];
}

export function pairs(names: readonly string[], otherNames: readonly string[]): Pairs {
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

function noteAddedAndRemoved(
  kind: ResourceKind,
  { added, names, otherNames, removed }: Pairs,
  changes: ResourceChange[],
): void {
  const none = { fields: [], fieldCount: 0 };
  for (const index of added) changes.push({ kind, name: otherNames[index]!, change: 'added', ...none });
  for (const index of removed) changes.push({ kind, name: names[index]!, change: 'removed', ...none });
}

/** Finds the changes of `paired`; `changed` are indexes in the new list. */
export function compareNamed(kind: ResourceKind, paired: Pairs, one: Shown, other: Shown, changes: ResourceChange[]) {
  noteAddedAndRemoved(kind, paired, changes);
  const changed: number[] = [];
  for (const { after, before, name } of paired.common) {
    const { fieldCount, fields } = fieldChanges(part(one, before), part(other, after));
    if (fieldCount === 0) continue;
    changed.push(after);
    changes.push({ kind, name, change: 'changed', fields, fieldCount });
  }
  return { changed, unchanged: paired.common.length - changed.length };
}

/** Compares routes apart from the rest; `routes` are the listeners of which only they have changed. */
export function compareListeners(paired: Pairs, one: Shown, other: Shown, changes: ResourceChange[]) {
  noteAddedAndRemoved('listener', paired, changes);
  const changed: number[] = [];
  const routes: number[] = [];
  let unchangedRoutes = 0;
  for (const { after, before, name } of paired.common) {
    const [older, newer] = [part(one, before), part(other, after)];
    const places = inlineRoutes(older.value as Listener);
    const newPlaces = inlineRoutes(newer.value as Listener);
    const common = [...newPlaces].filter(([place]) => places.has(place));
    const olderPaths = common.map(([place]) => places.get(place)!.path);
    const newerPaths = common.map(([, { path }]) => path);
    const rest = fieldChanges(withoutPaths(older, olderPaths), withoutPaths(newer, newerPaths));
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

function withoutPaths({ path, shown, value }: Shown, paths: readonly Path[]): Shown {
  return { path, value: without(value as Listener, paths), shown: without(shown as Listener, paths) };
}

/**
 * Compares the runtime layers of two whole bootstraps. `canChange`: they differ only in layers that can be replaced. `change`:
 * all layers before and after; undefined when nothing changes.
 */
export function compareLayers(one: Shown, other: Shown, changes: ResourceChange[]) {
  const [before, after] = [layersIn(one), layersIn(other)];
  const canChange = isDeepStrictEqual(before.filter(isFixed), after.filter(isFixed));
  if (!canChange) return { canChange, change: undefined, unchanged: before.length };
  const [names, otherNames] = [before.map(nameOf), after.map(nameOf)];
  const paired = pairs(names, otherNames);
  const { unchanged } = compareNamed('runtime layer', paired, at(one, LAYERS), at(other, LAYERS), changes);
  if (isDeepStrictEqual(before, after)) return { canChange, change: undefined, unchanged };
  noteOrder(names, otherNames, changes);
  return { canChange, change: { before, after }, unchanged };
}

const LAYERS: Path = ['layered_runtime', 'layers'];

function layersIn({ value }: Shown): readonly RuntimeLayer[] {
  return layersOf((value as Bootstrap).layered_runtime);
}

/** Returns whether a layer cannot be replaced: files are watched, admin values were set; only static values can be replaced. */
function isFixed({ static_layer }: RuntimeLayer): boolean {
  return static_layer === undefined;
}

/** Notes a changed order, since the last layer with a value wins. */
function noteOrder(names: readonly string[], otherNames: readonly string[], changes: ResourceChange[]): void {
  const before = names.filter((name) => otherNames.includes(name));
  const after = otherNames.filter((name) => names.includes(name));
  if (isDeepStrictEqual(before, after)) return;
  const fields = [{ path: 'layered_runtime.layers', before, after }];
  changes.push({ kind: 'runtime layer', name: 'their order', change: 'changed', fields, fieldCount: 1 });
}

/** Returns the value at a path. */
export function at(top: Shown, path: Path): Shown {
  return path.reduce(part, top);
}

export function nameOf({ name }: { readonly name?: string }): string {
  return name ?? '';
}
