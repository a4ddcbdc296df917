// What route configuration, virtual host, route and weighted cluster say together: header changes and filter configurations.

import { BatonError, buildEach } from '../../../common/errors/errors.js';
import { routeFilterConfig } from '../../../config/fields/filter-config.js';
import type { Any, CorsPolicy } from '../../../config/generated/api.js';
import type { Runtime } from '../../../runtime/runtime.js';
import { compileHeaderMutations, type HeaderChanges, type HeaderMutations } from '../../headers/header-mutations.js';

/** A filter that routes can speak to. */
export interface RouteFilter {
  /** As in the filter chain. */
  readonly name: string;
  /** The one that ends the chain, which no route can switch off. */
  readonly isTerminal?: boolean;
  /** Compiles what route configuration, virtual host, route and weighted cluster say, the most general first. */
  compileRouteConfig(configs: readonly Any[], where: string, runtime: Runtime, place: string): unknown;
  /** What speaks to it where no level does in typed_per_filter_config. */
  readonly routeField?: RouteField | undefined;
}

/** A field that virtual hosts and route actions have for one kind of filters. */
export interface RouteField {
  readonly name: 'cors';
  /** Type URL of the message that says the same in typed_per_filter_config, with the same fields. */
  readonly type: string;
}

/** What a route says to a filter that does not run there. */
export const FILTER_OFF = Symbol('off');
/** The same to one that runs, even if it is disabled in the chain, and is told nothing. */
export const FILTER_ON = Symbol('on');

/** The fields that a message of any level has. */
export interface Level {
  readonly request_headers_to_add?: HeaderChanges['toAdd'];
  readonly request_headers_to_remove?: HeaderChanges['toRemove'];
  readonly response_headers_to_add?: HeaderChanges['toAdd'];
  readonly response_headers_to_remove?: HeaderChanges['toRemove'];
  readonly typed_per_filter_config?: { readonly [name: string]: Any };
  /** Of a virtual host. */
  readonly cors?: CorsPolicy;
  /** Of a route. */
  readonly route?: { readonly cors?: CorsPolicy };
}

/** A level and its path in the configuration. */
export interface Place {
  readonly level: Level;
  readonly where: string;
}

export interface LevelSettings {
  readonly requestMutations: HeaderMutations | undefined;
  readonly responseMutations: HeaderMutations | undefined;
  /** By filter: what it has compiled, FILTER_OFF, FILTER_ON, or undefined where nothing is said to it. */
  readonly filterConfigs: readonly unknown[];
}

/**
 * Compiles what the places say together.
 * @param places the most specific first
 * @param specificWins header changes of the most specific place are made last; by default those of the most general are
 * @param placeOf gives what `where` is in the process, see RouteTableOptions.place
 */
export function settingsOfLevels(
  places: readonly Place[],
  specificWins: boolean,
  filters: readonly RouteFilter[],
  runtime: Runtime,
  placeOf: (where: string) => string,
): LevelSettings {
  const fromGeneral = [...places].reverse();
  const inOrder = specificWins ? fromGeneral : places;
  const [requestMutations, responseMutations] = buildEach(['request', 'response'] as const, (direction) =>
    mutationsOf(inOrder, direction),
  );
  return {
    requestMutations,
    responseMutations,
    filterConfigs: filters.map((filter) => filterConfig(filter, fromGeneral, runtime, placeOf)),
  };
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
  // What a place says to a filter that it switches off counts for nothing.
  const typed = entries.flatMap(({ config, isDisabled, path, where }) => {
    if (config === undefined || isDisabled) return [];
    return { config, where: within(where, ['typed_per_filter_config', name, ...path].join('.')) };
  });
  const said = typed.length > 0 || filter.routeField === undefined ? typed : fieldConfigs(filter.routeField, places);
  if (said.length === 0) return last && FILTER_ON;
  const configs = said.map(({ config }) => config);
  const { where } = said.at(-1)!;
  return filter.compileRouteConfig(configs, where, runtime, placeOf(where)) ?? FILTER_ON;
}

/** What one level says to a filter, and where. */
interface Said {
  readonly config: Any;
  readonly where: string;
}

function fieldConfigs({ name, type }: RouteField, places: readonly Place[]): Said[] {
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
