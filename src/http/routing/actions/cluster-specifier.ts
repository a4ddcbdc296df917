// Routes whose cluster a plugin chooses for each request: cluster_specifier_plugin and inline_cluster_specifier_plugin.

import type { StreamInfo } from '../../../access-log/stream/stream-info.js';
import { BatonError } from '../../../common/errors/errors.js';
import type { Any, ClusterSpecifierPlugin, RouteAction, RouteConfiguration } from '../../../config/generated/api.js';
import type { HeaderBlock } from '../../headers/header-block.js';
import type { RouteChoice, RoutesByCluster } from './cluster-choice.js';
import type { Route } from './route.js';

/** A plugin on one thread. */
export interface ClusterSpecifier {
  /**
   * Returns the name of the request's cluster, one character per byte; '' if there is none.
   * @param info of the request; undefined: only its head is known
   */
  clusterOf(headers: HeaderBlock, info: StreamInfo | undefined): string;
}

/** Creates the plugins of a thread. */
export interface ClusterSpecifiers {
  /** Returns undefined if this build does not have the plugin. `where`: the path of `config`. Throws a BatonError. */
  create(config: Any, where: string): ClusterSpecifier | undefined;
}

/** The plugins of one route configuration. Each is created with the first route that uses it. */
export class SpecifierTable {
  readonly #create: ClusterSpecifiers;
  readonly #plugins = new Map<string, NamedPlugin>();

  /** `specifiers`: undefined where no request is routed. */
  constructor(
    { cluster_specifier_plugins: plugins = [] }: RouteConfiguration,
    specifiers: ClusterSpecifiers = NO_CHOICE,
  ) {
    this.#create = specifiers;
    plugins.forEach((plugin, index) => {
      const name = plugin.extension?.name ?? '';
      // As in Envoy, the first one of a name counts.
      if (this.#plugins.has(name)) return;
      this.#plugins.set(name, { plugin, where: `cluster_specifier_plugins[${index}]`, created: undefined });
    });
  }

  /** Returns the plugin of a route action, or undefined if this build lacks an optional one. `where`: the path of the action. Throws a BatonError. */
  of(action: RouteAction, where: string): ClusterSpecifier | undefined {
    const { cluster_specifier_plugin: name, inline_cluster_specifier_plugin: inline } = action;
    if (inline !== undefined) return this.#plugin(inline, `${where}.inline_cluster_specifier_plugin`);
    const known = this.#plugins.get(name!);
    if (known === undefined) {
      throw new BatonError('CONFIG_INVALID', `no cluster specifier plugin has the name '${name}'`, {
        where: `${where}.cluster_specifier_plugin`,
        remedy: 'add it to cluster_specifier_plugins of the route configuration',
      });
    }
    known.created ??= { specifier: this.#plugin(known.plugin, known.where) };
    return known.created.specifier;
  }

  #plugin({ extension, is_optional: isOptional }: ClusterSpecifierPlugin, where: string): ClusterSpecifier | undefined {
    const config = extension?.typed_config;
    const specifier = config && this.#create.create(config, `${where}.extension.typed_config`);
    if (specifier !== undefined || isOptional) return specifier;
    const message = `'${extension?.name ?? ''}' is not a cluster specifier plugin of this build`;
    throw new BatonError('CONFIG_INVALID', message, { where: `${where}.extension` });
  }
}

interface NamedPlugin {
  readonly plugin: ClusterSpecifierPlugin;
  readonly where: string;
  created: { readonly specifier: ClusterSpecifier | undefined } | undefined;
}

/** What stands for the name of a cluster where no plugin runs. */
export const CHOSEN_BY_PLUGIN = '(chosen by a cluster specifier plugin)';
const NO_CHOICE: ClusterSpecifiers = { create: () => ({ clusterOf: () => CHOSEN_BY_PLUGIN }) };

/** The routes that a plugin chooses from. Without a plugin there is no route: as in Envoy, the following routes are tried. */
export class ChoiceBySpecifier<C> implements RouteChoice<C> {
  readonly #specifier: ClusterSpecifier | undefined;
  readonly #routes: RoutesByCluster<C>;

  constructor(specifier: ClusterSpecifier | undefined, routes: RoutesByCluster<C>) {
    this.#specifier = specifier;
    this.#routes = routes;
  }

  choose(headers: HeaderBlock, _random: number, info: StreamInfo | undefined): Route<C> | undefined {
    return this.#specifier && this.#routes.to(this.#specifier.clusterOf(headers, info));
  }
}
