// The configuration of routes for the ext_authz filter.

import type { CheckSettings, ExtAuthzPerRoute } from '../../../../config/generated/api.js';
import { byteText, type Memory } from '../../../sdk.js';
import type { RequestRules } from './authorization-filter.js';
import { type BodyRules, bodyRules } from './request-body.js';
import type { CreateFilter } from './services.js';

/** The compiled configuration of a route. */
export interface RouteRules {
  readonly isDisabled: boolean;
  readonly extensions: ReadonlyMap<string, string>;
  readonly settings: CheckSettings;
}

/** The most specific configuration decides about service and body, and whether the filter runs; extensions are merged. */
export function compileRouteRules(configs: readonly ExtAuthzPerRoute[]): RouteRules {
  const extensions = configs.flatMap((each) => Object.entries(each.check_settings?.context_extensions ?? {}));
  return {
    isDisabled: configs.at(-1)?.disabled === true,
    extensions: new Map(extensions.map(([key, value]) => [byteText(key), byteText(value)])),
    settings: configs.at(-1)?.check_settings ?? {},
  };
}

interface RouteFilters {
  readonly create: CreateFilter;
  readonly request: RequestRules;
}

/** What creates the filters of requests, by the configuration of their route. */
export class FiltersByRoute {
  readonly #own: RouteFilters;
  readonly #createWith: (override: CheckSettings) => CreateFilter;
  readonly #memory: Memory;
  readonly #byRoute = new WeakMap<RouteRules, RouteFilters>();

  /** `createWith`: creates filters with the service of a route. */
  constructor(own: RouteFilters, createWith: (override: CheckSettings) => CreateFilter, memory: Memory) {
    this.#own = own;
    this.#createWith = createWith;
    this.#memory = memory;
  }

  /** Undefined: the route has no configuration. */
  of(rules: RouteRules | undefined): RouteFilters {
    if (rules === undefined) return this.#own;
    let filters = this.#byRoute.get(rules);
    if (filters === undefined) this.#byRoute.set(rules, (filters = this.#build(rules)));
    return filters;
  }

  #build({ extensions, settings }: RouteRules): RouteFilters {
    const hasService = settings.grpc_service !== undefined || settings.http_service !== undefined;
    return {
      create: hasService ? this.#createWith(settings) : this.#own.create,
      request: { extensions, body: this.#body(settings) },
    };
  }

  #body({ disable_request_body_buffering: isDisabled, with_request_body: own }: CheckSettings): BodyRules | undefined {
    if (isDisabled === true) return undefined;
    return own === undefined ? this.#own.request.body : bodyRules(own, this.#memory);
  }
}
