// The generic secrets that routes name in typed_per_filter_config.

import { callExtension } from '../../common/errors/defects.js';
import { routeFilterConfig } from '../../config/fields/filter-config.js';
import { hostRoutes } from '../../config/fields/host-routes.js';
import type { Any, RouteConfiguration, SdsSecretConfig } from '../../config/generated/api.js';
import type { ExtensionFinder, PrimaryFilterContext, PrimaryPart, PrimarySecrets } from '../../extensions/factories.js';

/** The secrets of all routes. */
export class RouteSecrets {
  readonly #extensions: ExtensionFinder;
  readonly #secrets: PrimarySecrets;

  constructor(extensions: ExtensionFinder, secrets: PrimarySecrets) {
    this.#extensions = extensions;
    this.#secrets = secrets;
  }

  /** Returns why the secrets of these routes cannot be used; undefined when they can. */
  problem(config: RouteConfiguration): string | undefined {
    for (const secret of this.#find(config)) {
      const problem = this.#secrets.problem(secret);
      if (problem !== undefined) return problem;
    }
    return undefined;
  }

  /** Makes the secrets of these routes available to workers until the part is closed. */
  use(configs: Iterable<RouteConfiguration>, waitFor?: PrimaryFilterContext['waitFor']): PrimaryPart {
    const found = Array.from(configs, (config) => [...this.#find(config)]).flat();
    return found.length === 0 ? NONE : this.#secrets.use(found, waitFor);
  }

  *#find(config: RouteConfiguration): Generator<SdsSecretConfig, void> {
    for (const filters of filterConfigs(config)) {
      for (const entry of Object.values(filters)) {
        const { config: own } = routeFilterConfig(entry);
        if (own === undefined || !this.#extensions.hasHttpFilter(own)) continue;
        const { name, secrets } = this.#extensions.httpFilter(own);
        if (secrets !== undefined) yield* callExtension('secrets', name, () => secrets(own));
      }
    }
  }
}

const NONE: PrimaryPart = { close() {} };

type FilterConfigs = Readonly<Record<string, Any>>;

/** Yields the typed_per_filter_config of each level. */
function* filterConfigs(config: RouteConfiguration): Generator<FilterConfigs, void> {
  yield config.typed_per_filter_config ?? {};
  for (const host of config.virtual_hosts ?? []) {
    yield host.typed_per_filter_config ?? {};
    for (const { route } of hostRoutes(host)) {
      yield route.typed_per_filter_config ?? {};
      for (const cluster of route.route?.weighted_clusters?.clusters ?? []) yield cluster.typed_per_filter_config ?? {};
    }
  }
}
