// One place in one filter chain that takes a discovered configuration: its stats, and what its filter has on the primary.

import { callExtension } from '../../common/errors/defects.js';
import type { Any } from '../../config/generated/api.js';
import { discoveredExtension } from '../../extensions/discovered-filters.js';
import type { DiscoveredFilterUser, HttpFilterExtension, PrimaryPart } from '../../extensions/factories.js';
import { createPart } from '../../extensions/primary-part.js';
import { statScopeKey } from '../../stats/scope-prefix.js';
import type { ScopeRef } from '../../stats/thread-stats.js';
import type { HeldScopes } from '../workers/worker-scopes.js';
import type { FilterConfigsContext } from './filter-configs-context.js';

/** What a filter has of a configuration on the primary, made before workers build it. One of the two is called, once. */
export interface PreparedConfig {
  /** The filter has it from now on; what it had until now ends. */
  use(): void;
  /** It will not be used. */
  discard(): void;
}

export class ChainUse {
  readonly #user: DiscoveredFilterUser;
  readonly #context: FilterConfigsContext;
  /** By statScopeKey(). They stay until the chain is gone: streams count in those of the configuration that they began with. */
  readonly #scopes = new Map<string, HeldScopes>();
  #part: PrimaryPart | undefined;

  constructor(user: DiscoveredFilterUser, context: FilterConfigsContext) {
    this.#user = user;
    this.#context = context;
  }

  /** The extension that `config` configures here. Throws a BatonError when it cannot be used in this place. */
  extensionOf(config: Any): HttpFilterExtension {
    const { filter, context } = this.#user;
    return discoveredExtension(filter.name ?? '', config, filter.config_discovery!, context.extensions);
  }

  /** Makes all that the filter needs before workers build it. Throws when that cannot be had, such as names of its stats. */
  prepare(extension: HttpFilterExtension, config: Any): PreparedConfig {
    const { chain, context } = this.#user;
    const scopes = callExtension('scopes', extension.name, () => extension.scopes?.(config, chain) ?? []);
    for (const { prefix, layout } of scopes) {
      const key = statScopeKey(prefix, layout);
      if (this.#scopes.has(key)) continue;
      this.#scopes.set(key, this.#context.scopes.hold([{ prefix, layout }]));
    }
    const part = createPart(extension, config, context);
    return {
      use: () => {
        this.#part?.close();
        this.#part = part;
      },
      discard: () => part?.close(),
    };
  }

  /** The filter has no configuration any more, or that of the chain itself again. Throws when it cannot have what that needs. */
  withdraw(): void {
    const { default_config: byDefault } = this.#user.filter.config_discovery!;
    let own: PreparedConfig | undefined;
    try {
      own = byDefault && this.prepare(this.extensionOf(byDefault), byDefault);
    } finally {
      own?.use();
      if (own === undefined) {
        this.#part?.close();
        this.#part = undefined;
      }
    }
  }

  get scopes(): Readonly<Record<string, ScopeRef>> {
    return Object.assign({}, ...[...this.#scopes.values()].map(({ refs }) => refs));
  }

  /** The chain is gone, on all workers. */
  close(): void {
    this.#part?.close();
    const held = [...this.#scopes.values()];
    const removedStatScopes = held.flatMap((scopes) => scopes.retire());
    if (removedStatScopes.length > 0) this.#context.publish({ removedStatScopes });
    for (const scopes of held) scopes.free();
  }
}
