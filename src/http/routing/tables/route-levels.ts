// What route configuration, virtual host, route and weighted cluster say together: header changes and filter configurations.

import { buildEach } from '../../../common/errors/errors.js';
import type { Any } from '../../../config/generated/api.js';
import type { Runtime } from '../../../runtime/runtime.js';
import { compileHeaderMutations, type HeaderChanges, type HeaderMutations } from '../../headers/header-mutations.js';

/** A filter that typed_per_filter_config can speak to. */
export interface RouteFilter {
  /** As in the filter chain. */
  readonly name: string;
  /** Compiles what route configuration, virtual host, route and weighted cluster say, the most general first. */
  compileRouteConfig(configs: readonly Any[], where: string, runtime: Runtime): unknown;
}

/** The fields that a message of any level has. */
export interface Level {
  readonly request_headers_to_add?: HeaderChanges['toAdd'];
  readonly request_headers_to_remove?: HeaderChanges['toRemove'];
  readonly response_headers_to_add?: HeaderChanges['toAdd'];
  readonly response_headers_to_remove?: HeaderChanges['toRemove'];
  readonly typed_per_filter_config?: { readonly [name: string]: Any };
}

/** A level and its path in the configuration. */
export interface Place {
  readonly level: Level;
  readonly where: string;
}

export interface LevelSettings {
  readonly requestMutations: HeaderMutations | undefined;
  readonly responseMutations: HeaderMutations | undefined;
  /** By filter. */
  readonly filterConfigs: readonly unknown[];
}

/**
 * Compiles what the places say together.
 * @param places the most specific first
 * @param specificWins header changes of the most specific place are made last; by default those of the most general are
 */
export function settingsOfLevels(
  places: readonly Place[],
  specificWins: boolean,
  filters: readonly RouteFilter[],
  runtime: Runtime,
): LevelSettings {
  const fromGeneral = [...places].reverse();
  const inOrder = specificWins ? fromGeneral : places;
  const [requestMutations, responseMutations] = buildEach(['request', 'response'] as const, (direction) =>
    mutationsOf(inOrder, direction),
  );
  return {
    requestMutations,
    responseMutations,
    filterConfigs: filters.map((filter) => filterConfig(filter, fromGeneral, runtime)),
  };
}

function filterConfig(filter: RouteFilter, places: readonly Place[], runtime: Runtime): unknown {
  const configured = places.filter(({ level }) => level.typed_per_filter_config?.[filter.name] !== undefined);
  if (configured.length === 0) return undefined;
  const configs = configured.map(({ level }) => level.typed_per_filter_config![filter.name]!);
  const where = within(configured.at(-1)!.where, `typed_per_filter_config.${filter.name}`);
  return filter.compileRouteConfig(configs, where, runtime);
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
