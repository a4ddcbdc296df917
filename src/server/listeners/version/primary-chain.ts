// One filter chain of a listener on the primary: the stat scopes of its filters, and their parts.

import { callExtension } from '../../../common/errors/defects.js';
import { ownRoutes } from '../../../config/fields/own-routes.js';
import type { FilterChain, RouteConfiguration } from '../../../config/generated/api.js';
import type { ListenerIdentity, PrimaryPart } from '../../../extensions/factories.js';
import type { ExtensionRegistry } from '../../../extensions/registry.js';
import type { ChainSnapshot, InlineRoutesSnapshot } from '../../../worker/messages/messages.js';
import { type PackedRoutes, packRoutes } from '../../../worker/messages/packed-routes.js';
import type { InitManager } from '../../init/init-manager.js';
import type { HeldScopes, WorkerScopes } from '../../workers/worker-scopes.js';
import type { FilterParts } from './filter-parts.js';
import { newId, type PublishedItem } from './published-item.js';

export interface ChainContext {
  readonly extensions: ExtensionRegistry;
  readonly scopes: WorkerScopes;
  readonly parts: FilterParts;
}

export class PrimaryChain implements PublishedItem {
  readonly id = newId();
  readonly isDefault: boolean;
  readonly scopes: HeldScopes;
  #config: FilterChain;
  /** Its inline routes as last published. */
  #packed: PackedRoutes | undefined;
  readonly #part: PrimaryPart;

  /** `init` waits for the filters' targets. Throws, with nothing left behind, when a filter cannot be used as configured. */
  constructor(
    config: FilterChain,
    isDefault: boolean,
    listener: ListenerIdentity,
    { extensions, parts, scopes }: ChainContext,
    init: InitManager,
  ) {
    this.#config = config;
    this.isDefault = isDefault;
    this.scopes = scopes.hold(
      (config.filters ?? []).flatMap(({ typed_config: filter }) => {
        const extension = extensions.networkFilter(filter!);
        return callExtension('scopes', extension.name, () => extension.scopes?.(filter!, listener, extensions) ?? []);
      }),
    );
    try {
      this.#part = parts.create(config, init);
    } catch (error) {
      this.scopes.discard();
      throw error;
    }
  }

  get snapshot(): ChainSnapshot {
    const { id, isDefault } = this;
    const routes = routesOf(this.#config);
    return { id, isDefault, config: withoutRoutes(this.#config), routes: routes && this.#pack(routes) };
  }

  get config(): FilterChain {
    return this.#config;
  }

  /** See PrimaryListener.prepareRoutes(). */
  prepareRoutes(config: FilterChain): () => Omit<InlineRoutesSnapshot, 'listener'> {
    const change = this.#part.prepareRoutes?.(config.filters!.at(-1)!.typed_config!);
    return () => {
      change?.();
      this.#config = config;
      return { chain: this.id, routes: this.#pack(routesOf(config) ?? {}) };
    };
  }

  #pack(routes: RouteConfiguration): PackedRoutes {
    this.#packed = packRoutes(routes, this.#packed);
    return this.#packed;
  }

  /** See PublishedItem. */
  retire(): string[] {
    return this.scopes.retire();
  }

  free(): void {
    this.#part.close();
    this.scopes.free();
  }

  /** Discards a chain that was never published. */
  discard(): void {
    this.#part.close();
    this.scopes.discard();
  }
}

/** Returns the routes in the configuration of the chain's connection manager. */
function routesOf({ filters = [] }: FilterChain): RouteConfiguration | undefined {
  return ownRoutes(filters.at(-1)?.typed_config);
}

function withoutRoutes(chain: FilterChain): FilterChain {
  if (routesOf(chain) === undefined) return chain;
  const { filters = [] } = chain;
  const terminal = filters.at(-1)!;
  const typed_config = { ...terminal.typed_config!, route_config: undefined };
  return { ...chain, filters: [...filters.slice(0, -1), { ...terminal, typed_config }] };
}
