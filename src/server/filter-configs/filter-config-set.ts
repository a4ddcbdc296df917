// The discovered HTTP filter configurations (ECDS) on the primary. All chains that name the same one share it.

import { isFileSource } from '../../config/fields/file-of-source.js';
import { namedScripts } from '../../config/fields/scripts.js';
import { keyOfDiscovered } from '../../extensions/discovered-filters.js';
import type { DiscoveredFilterUser, PrimaryFilterConfigs, PrimaryPart } from '../../extensions/factories.js';
import type { SnapshotParts } from '../workers/snapshots.js';
import { ChainUse } from './chain-use.js';
import { FilterConfigProvider } from './filter-config-provider.js';
import type { FilterConfigsContext } from './filter-configs-context.js';

export class FilterConfigSet implements PrimaryFilterConfigs {
  readonly #context: FilterConfigsContext;
  readonly #providers = new Map<string, FilterConfigProvider>();
  #lastId = 0;

  constructor(context: FilterConfigsContext) {
    this.#context = context;
  }

  /** A filter uses a discovered configuration. */
  get isUsed(): boolean {
    return this.#providers.size > 0;
  }

  get providers(): Iterable<FilterConfigProvider> {
    return this.#providers.values();
  }

  /** Yields the modules of the discovered script filters with that name. */
  *scriptModules(name: string): Generator<string, void> {
    for (const provider of this.#providers.values()) {
      if (provider.name === name) yield* namedScripts(provider.resource?.message).map(({ module }) => module);
    }
  }

  /** Returns the parts of a snapshot for starting workers. */
  snapshots(): Required<Pick<SnapshotParts, 'filterConfigs'>> {
    return { filterConfigs: Array.from(this.#providers.values(), (provider) => provider.snapshot) };
  }

  /** Throws, with nothing left behind, when stats or what the default configuration needs cannot be allocated. */
  attach(user: DiscoveredFilterUser): PrimaryPart {
    const { filter, context } = user;
    const { apply_default_config_without_warming: isEarly, default_config: byDefault } = filter.config_discovery!;
    const key = keyOfDiscovered(filter);
    const use = new ChainUse(user, this.#context);
    let provider: FilterConfigProvider;
    try {
      if (byDefault !== undefined) use.prepare(use.extensionOf(byDefault), byDefault).use();
      provider = this.#providers.get(key) ?? this.#add(key, user);
    } catch (error) {
      use.close();
      throw error;
    }
    const isLocal = isFileSource(filter.config_discovery!.config_source);
    const isWaiting = !isEarly || byDefault === undefined;
    const target = isWaiting ? context.waitFor(`ECDS ${filter.name ?? ''}`, isLocal) : undefined;
    provider.add(use, () => target?.ready());
    return {
      close: () => {
        provider.remove(use);
        target?.ready();
        use.close();
        if (provider.isUsed || this.#providers.get(key) !== provider) return;
        this.#providers.delete(key);
        provider.close();
        this.#context.publish({ removedFilterConfigs: [provider.id] });
      },
    };
  }

  #add(key: string, { filter }: DiscoveredFilterUser): FilterConfigProvider {
    const source = filter.config_discovery!.config_source!;
    const provider = new FilterConfigProvider(this.#context, {
      id: ++this.#lastId,
      key,
      source,
      name: filter.name ?? '',
    });
    this.#providers.set(key, provider);
    this.#context.publish({ filterConfigs: [provider.snapshot] });
    return provider;
  }
}
