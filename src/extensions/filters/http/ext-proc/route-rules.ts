// The configuration of routes for the ext_proc filter.

import type { ExtProcOverrides, ExtProcPerRoute } from '../../../../config/generated/api.js';
import type { Rules } from './rules.js';

/** The compiled configuration of a route. */
export interface RouteRules {
  readonly isDisabled: boolean;
  readonly overrides: ExtProcOverrides;
}

/** Each override of a more specific configuration replaces that of the others; initial metadata is merged by name. */
export function compileRouteRules(configs: readonly ExtProcPerRoute[]): RouteRules {
  let merged: ExtProcOverrides = {};
  for (const { overrides = {} } of configs) {
    const added = overrides.grpc_initial_metadata ?? [];
    const names = new Set(added.map(({ key }) => key));
    const kept = (merged.grpc_initial_metadata ?? []).filter(({ key }) => !names.has(key));
    const metadata_options = { ...merged.metadata_options, ...overrides.metadata_options };
    merged = { ...merged, ...overrides, metadata_options, grpc_initial_metadata: [...kept, ...added] };
  }
  return { isDisabled: configs.at(-1)?.disabled === true, overrides: merged };
}

/** The rules of requests by the configuration of their route. */
export class RulesByRoute {
  readonly #own: Rules;
  readonly #compile: (overrides: ExtProcOverrides) => Rules;
  readonly #byRoute = new WeakMap<RouteRules, Rules>();

  constructor(own: Rules, compile: (overrides: ExtProcOverrides) => Rules) {
    this.#own = own;
    this.#compile = compile;
  }

  /** Undefined: the route has no configuration. */
  of(route: RouteRules | undefined): Rules {
    if (route === undefined) return this.#own;
    let rules = this.#byRoute.get(route);
    if (rules === undefined) this.#byRoute.set(route, (rules = this.#compile(route.overrides)));
    return rules;
  }
}
