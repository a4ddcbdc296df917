// The use of a discovered configuration in one filter chain: its stats, and its filter's part on the primary.

import { callExtension } from '../../common/errors/defects.js';
import { innerFilters, withInnerFilters } from '../../config/fields/inner-filters.js';
import type { Any, HttpFilter } from '../../config/generated/api.js';
import { discoveredExtension } from '../../extensions/discovered-filters.js';
import type {
  DiscoveredFilterUser,
  ExtensionFinder,
  HttpChain,
  HttpFilterExtension,
  PrimaryFilterContext,
  PrimaryPart,
} from '../../extensions/factories.js';
import { createPart } from '../../extensions/primary-part.js';
import { statScopeKey } from '../../stats/scope-prefix.js';
import type { ScopeRequest } from '../../stats/store.js';
import type { ScopeRef } from '../../stats/thread-stats.js';
import type { HeldScopes } from '../workers/worker-scopes.js';
import type { FilterConfigsContext } from './filter-configs-context.js';

/** A filter's part on the primary, created before workers build the filter. The owner calls exactly one method, once. */
export interface PreparedConfig {
  /** Puts the part into use, and closes the previous one. */
  use(): void;
  /** Closes the part unused. */
  discard(): void;
}

export class ChainUse {
  readonly #user: DiscoveredFilterUser;
  readonly #context: FilterConfigsContext;
  /** By statScopeKey(). Kept until the chain is gone: a stream counts in the scopes of the configuration with which it began. */
  readonly #scopes = new Map<string, HeldScopes>();
  #part: PrimaryPart | undefined;

  constructor(user: DiscoveredFilterUser, context: FilterConfigsContext) {
    this.#user = user;
    this.#context = context;
  }

  /** Returns the extension for `config`. Throws a BatonError when it cannot be used in this place. */
  extensionOf(config: Any): HttpFilterExtension {
    const { filter, context } = this.#user;
    return discoveredExtension(filter.name ?? '', config, filter.config_discovery!, context.extensions);
  }

  /**
   * Creates everything that the filter needs before workers build it. Throws when that fails, for example for lack of stat names.
   */
  prepare(extension: HttpFilterExtension, config: Any): PreparedConfig {
    const { chain, context } = this.#user;
    const inner = withInnerFilters(innerFilters(config).map(({ filter }) => filter));
    const scopes = [config, ...inner.flatMap(({ typed_config: own }) => own ?? [])].flatMap((own) =>
      scopesOf(own, chain, context.extensions),
    );
    for (const { prefix, layout } of scopes) {
      const key = statScopeKey(prefix, layout);
      if (this.#scopes.has(key)) continue;
      this.#scopes.set(key, this.#context.scopes.hold([{ prefix, layout }]));
    }
    const part = partOf(extension, config, inner, chain, context);
    return {
      use: () => {
        this.#part?.close();
        this.#part = part;
      },
      discard: () => part?.close(),
    };
  }

  /** Returns to the chain's default configuration, or to none. Throws when the default cannot be prepared. */
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

  /** Called when the chain is gone on all workers. */
  close(): void {
    this.#part?.close();
    const held = [...this.#scopes.values()];
    const removedStatScopes = held.flatMap((scopes) => scopes.retire());
    if (removedStatScopes.length > 0) this.#context.publish({ removedStatScopes });
    for (const scopes of held) scopes.free();
  }
}

function scopesOf(config: Any, chain: HttpChain, extensions: ExtensionFinder): ScopeRequest[] {
  const extension = extensions.httpFilter(config);
  if (extension.isTerminal) return [];
  return callExtension('scopes', extension.name, () => extension.scopes?.(config, chain) ?? []);
}

/** Creates the parts of the filter and of those inside it. */
function partOf(
  extension: HttpFilterExtension,
  config: Any,
  inner: readonly HttpFilter[],
  chain: HttpChain,
  context: PrimaryFilterContext,
): PrimaryPart | undefined {
  const own = createPart(extension, config, context, chain);
  if (inner.length === 0) return own;
  const parts = own === undefined ? [] : [own];
  try {
    for (const filter of inner) {
      const part = partOfInner(filter, chain, context);
      if (part !== undefined) parts.push(part);
    }
  } catch (error) {
    for (const part of parts) part.close();
    throw error;
  }
  return {
    close: () => {
      for (const part of parts) part.close();
    },
  };
}

function partOfInner(filter: HttpFilter, chain: HttpChain, context: PrimaryFilterContext): PrimaryPart | undefined {
  const { typed_config: config } = filter;
  if (config === undefined) return context.filterConfigs.attach({ filter, chain, context });
  const extension = context.extensions.httpFilter(config);
  return extension.isTerminal ? undefined : createPart(extension, config, context, chain);
}
