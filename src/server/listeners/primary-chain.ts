// One filter chain of a listener as the primary keeps it: what its filters count in, and what they have here.

import type { FilterChain } from '../../config/generated/api.js';
import { unpacked } from '../../config/schema/any.js';
import type { ListenerIdentity, PrimaryPart } from '../../extensions/factories.js';
import type { ExtensionRegistry } from '../../extensions/registry.js';
import type { ChainSnapshot, InlineRoutesSnapshot } from '../../worker/messages.js';
import { packRoutes } from '../../worker/packed-routes.js';
import type { InitManager } from '../init/init-manager.js';
import type { HeldScopes, WorkerScopes } from '../workers/worker-scopes.js';
import type { FilterParts } from './filter-parts.js';
import { newId } from './ids.js';

const MANAGER = 'envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager' as const;

export interface ChainMakers {
  readonly extensions: ExtensionRegistry;
  readonly scopes: WorkerScopes;
  readonly parts: FilterParts;
}

export class PrimaryChain {
  #snapshot: ChainSnapshot;
  readonly scopes: HeldScopes;
  readonly #part: PrimaryPart;

  /** `init` waits for what its filters need. Throws, with nothing left, when a filter cannot be used as it is configured. */
  constructor(
    config: FilterChain,
    isDefault: boolean,
    listener: ListenerIdentity,
    { extensions, parts, scopes }: ChainMakers,
    init: InitManager,
  ) {
    this.#snapshot = { id: newId(), config, isDefault };
    this.scopes = scopes.hold(
      (config.filters ?? []).flatMap(({ typed_config: filter }) =>
        extensions.networkFilter(filter!).scopes(filter!, listener, extensions),
      ),
    );
    try {
      this.#part = parts.create(config, init);
    } catch (error) {
      this.scopes.retire();
      this.scopes.free();
      throw error;
    }
  }

  get snapshot(): ChainSnapshot {
    return this.#snapshot;
  }

  get id(): number {
    return this.#snapshot.id;
  }

  get config(): FilterChain {
    return this.#snapshot.config;
  }

  /** See PrimaryListener.prepareRoutes(). */
  prepareRoutes(config: FilterChain): () => Omit<InlineRoutesSnapshot, 'listener'> {
    const manager = config.filters!.at(-1)!.typed_config!;
    const change = this.#part.prepareRoutes?.(manager);
    return () => {
      change?.();
      this.#snapshot = { ...this.#snapshot, config };
      return { chain: this.id, routes: packRoutes(unpacked(manager, MANAGER).route_config ?? {}) };
    };
  }

  /** No worker has it, or none has had it. */
  close(): void {
    this.#part.close();
    this.scopes.free();
  }
}
