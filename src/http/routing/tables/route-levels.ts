// Combines the settings of route configuration, virtual host, route and weighted cluster: header changes and filter configurations.

import { BatonError, buildEach } from '../../../common/errors/errors.js';
import { routeFilterConfig } from '../../../config/fields/filter-config.js';
import type { Any, CorsPolicy } from '../../../config/generated/api.js';
import type { Runtime } from '../../../runtime/runtime.js';
import { compileHeaderMutations, type HeaderChanges, type HeaderMutations } from '../../headers/header-mutations.js';

/** A filter that routes can configure. */
export interface RouteFilter {
  /** The name in the filter chain. */
  readonly name: string;
  /** The terminal filter, which no route can disable. */
  readonly isTerminal?: boolean;
  /** Compiles the configurations of route configuration, virtual host, route and weighted cluster, the most general first. */
  compileRouteConfig(configs: readonly Any[], where: string, runtime: Runtime, place: string): unknown;
  /**
   * Of the terminal filter: its slot in LevelSettings.filterConfigs has the configurations of upstream HTTP filters, by their names;
   * undefined: there are none.
   */
  readonly compileUpstream?: CompileUpstream;
  /** The field that configures the filter if no level has typed_per_filter_config for it. */
  readonly routeField?: RouteField | undefined;
}

/** Compiles the configurations of an upstream HTTP filter as compileRouteConfig() does; undefined: no such filter can have them. */
export type CompileUpstream = RouteFilter['compileRouteConfig'];

/** A field of virtual hosts and route actions that configures one kind of filter. */
export interface RouteField {
  readonly name: 'cors';
  /** Type URL of the equivalent message in typed_per_filter_config, which has the same fields. */
  readonly type: string;
}

/** The route's configuration of a filter that the route disables. */
export const FILTER_OFF = Symbol('off');
/** The route's configuration of a filter that the route enables, even if it is disabled in the chain, without further settings. */
export const FILTER_ON = Symbol('on');

/** The common fields of the messages of all levels. */
export interface Level {
  readonly request_headers_to_add?: HeaderChanges['toAdd'];
  readonly request_headers_to_remove?: HeaderChanges['toRemove'];
  readonly response_headers_to_add?: HeaderChanges['toAdd'];
  readonly response_headers_to_remove?: HeaderChanges['toRemove'];
  readonly typed_per_filter_config?: { readonly [name: string]: Any };
  /** In a virtual host. */
  readonly cors?: CorsPolicy;
  /** In a route. */
  readonly route?: { readonly cors?: CorsPolicy };
}

/** A level and its path in the configuration. */
export interface Place {
  readonly level: Level;
  readonly where: string;
  readonly isWeightedCluster?: boolean;
}

export interface LevelSettings {
  readonly requestMutations: HeaderMutations | undefined;
  readonly responseMutations: HeaderMutations | undefined;
  /** Indexed by filter: its compiled configuration, FILTER_OFF, FILTER_ON, or undefined if the levels do not configure it. */
  readonly filterConfigs: readonly unknown[];
}

/**
 * Compiles the combined settings of the places.
 * @param places the most specific first
 * @param specificWins header changes of the most specific place apply last; by default those of the most general one do. As in Envoy, those
 *   of a weighted cluster apply first in either case
 * @param placeOf returns the process-wide name of `where`, see RouteTableOptions.place
 */
export function settingsOfLevels(
  places: readonly Place[],
  specificWins: boolean,
  filters: readonly RouteFilter[],
  runtime: Runtime,
  placeOf: (where: string) => string,
): LevelSettings {
  const fromGeneral = [...places].reverse();
  const inOrder = specificWins ? inOrderOf(fromGeneral) : places;
  const [requestMutations, responseMutations] = buildEach(['request', 'response'] as const, (direction) =>
    mutationsOf(inOrder, direction),
  );
  return {
    requestMutations,
    responseMutations,
    filterConfigs: filters.map((filter) => {
      const own = filterConfig(filter, fromGeneral, runtime, placeOf);
      return filter.compileUpstream === undefined
        ? own
        : upstreamConfigs(filter.compileUpstream, fromGeneral, runtime, placeOf);
    }),
  };
}

/** Returns the places, the most general first, with the weighted cluster before all others. */
function inOrderOf(fromGeneral: readonly Place[]): readonly Place[] {
  const weighted = fromGeneral.filter(({ isWeightedCluster }) => isWeightedCluster);
  return [...weighted, ...fromGeneral.filter(({ isWeightedCluster }) => !isWeightedCluster)];
}

/** `places`: the most general first. */
function filterConfig(
  filter: RouteFilter,
  places: readonly Place[],
  runtime: Runtime,
  placeOf: (where: string) => string,
): unknown {
  const { name } = filter;
  const entries = places.flatMap(({ level, where }) => {
    const entry = level.typed_per_filter_config?.[name];
    return entry === undefined ? [] : { ...routeFilterConfig(entry), where };
  });
  const last = entries.at(-1);
  if (last?.isDisabled) {
    if (!filter.isTerminal) return FILTER_OFF;
    const where = within(last.where, `typed_per_filter_config.${name}.disabled`);
    throw new BatonError('CONFIG_INVALID', `'${name}' ends the chain and cannot be disabled`, { where });
  }
  // The configuration of a disabled filter is ignored.
  const typed = entries.flatMap(({ config, isDisabled, path, where }) => {
    if (config === undefined || isDisabled) return [];
    return { config, where: within(where, ['typed_per_filter_config', name, ...path].join('.')) };
  });
  const found = typed.length > 0 || filter.routeField === undefined ? typed : fieldConfigs(filter.routeField, places);
  if (found.length === 0) return last && FILTER_ON;
  const configs = found.map(({ config }) => config);
  const { where } = found.at(-1)!;
  return filter.compileRouteConfig(configs, where, runtime, placeOf(where)) ?? FILTER_ON;
}

/** `places`: the most general first. */
function upstreamConfigs(
  compileUpstream: CompileUpstream,
  places: readonly Place[],
  runtime: Runtime,
  placeOf: (where: string) => string,
): ReadonlyMap<string, unknown> | undefined {
  let found: Map<string, unknown> | undefined;
  for (const { level } of places) {
    for (const name in level.typed_per_filter_config) {
      found ??= new Map();
      if (found.has(name)) continue;
      found.set(name, filterConfig({ name, compileRouteConfig: compileUpstream }, places, runtime, placeOf));
    }
  }
  return found;
}

/** The configuration of a filter at one level, and its path. */
interface LevelConfig {
  readonly config: Any;
  readonly where: string;
}

function fieldConfigs({ name, type }: RouteField, places: readonly Place[]): LevelConfig[] {
  return places.flatMap(({ level, where }) => {
    const ofHost = level[name];
    const config = ofHost ?? level.route?.[name];
    if (config === undefined) return [];
    return [{ config: { '@type': type, ...config }, where: within(where, ofHost ? name : `route.${name}`) }];
  });
}

function mutationsOf(places: readonly Place[], direction: 'request' | 'response'): HeaderMutations | undefined {
  return compileHeaderMutations(
    places.map(({ level, where }) => ({
      toRemove: level[`${direction}_headers_to_remove`],
      toAdd: level[`${direction}_headers_to_add`],
      where: (list, index) => within(where, `${direction}_headers_${list}[${index}]`),
    })),
  );
}

function within(where: string, field: string): string {
  return where === '' ? field : `${where}.${field}`;
}
