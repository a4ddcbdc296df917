// One HTTP filter configuration that a source delivers (ECDS), shared by all chains that name it. It checks each version,
// publishes it to the workers, and keeps the last accepted version.

import { messageOf } from '../../common/errors/errors.js';
import { shownName } from '../../common/text/shown.js';
import type { Any, ConfigSource, TypedExtensionConfig } from '../../config/generated/api.js';
import { messageWithoutSecrets } from '../../config/text/secrets.js';
import { getLogger } from '../../log/logger.js';
import { ExtensionConfigStats } from '../../stats/layouts/xds.js';
import type { ScopeRef } from '../../stats/thread-stats.js';
import type { FilterConfigSnapshot } from '../../worker/messages/messages.js';
import { accepted, DOES_NOT_EXIST, type DynamicState, REQUESTED, refused, rejected } from '../../xds/dynamic-state.js';
import type { Resource, Update } from '../../xds/resource.js';
import type { Rejection, Subscription, Watcher } from '../../xds/subscription.js';
import type { ChainUse, PreparedConfig } from './chain-use.js';
import type { FilterConfigsContext } from './filter-configs-context.js';

const logger = getLogger('config');

export interface ProviderOptions {
  /** Unique; never reused. */
  readonly id: number;
  readonly key: string;
  readonly source: ConfigSource;
  /** Name of both the filter and the resource. */
  readonly name: string;
}

export class FilterConfigProvider implements Watcher<TypedExtensionConfig> {
  readonly id: number;
  readonly name: string;
  readonly #key: string;
  readonly #context: FilterConfigsContext;
  readonly #scope: ScopeRef;
  readonly #subscription: Subscription;
  /** The uses, each with a callback that is called once the configuration has arrived or its fetch has timed out. */
  readonly #uses = new Map<ChainUse, () => void>();
  #state: DynamicState = REQUESTED;
  #resource: Resource<TypedExtensionConfig> | undefined;
  #isSettled = false;

  /** Subscribes. */
  constructor(context: FilterConfigsContext, { id, key, source, name }: ProviderOptions) {
    this.id = id;
    this.name = name;
    this.#key = key;
    this.#context = context;
    const statPrefix = `extension_config_discovery.http_filter.${name}.`;
    this.#scope = context.store.addScope(statPrefix, ExtensionConfigStats);
    const names = new Set([name]);
    this.#subscription = context.sources.subscribe({
      source,
      type: 'extension-config',
      names,
      statPrefix,
      watcher: this,
    });
  }

  get isUsed(): boolean {
    return this.#uses.size > 0;
  }

  get state(): DynamicState {
    return this.#state;
  }

  /** The resource in use. */
  get resource(): Resource<TypedExtensionConfig> | undefined {
    return this.#resource;
  }

  get snapshot(): FilterConfigSnapshot {
    return { id: this.id, key: this.#key, config: this.#resource?.message.typed_config };
  }

  /** Adds a chain. If it cannot use the current configuration, its filter stays unconfigured until the next version. */
  add(use: ChainUse, ready: () => void): void {
    this.#uses.set(use, ready);
    const config = this.#resource?.message.typed_config;
    if (config !== undefined) {
      const prepared = prepareFor([use], config);
      if (typeof prepared !== 'string') prepared[0]!.use();
      else {
        this.#count(ExtensionConfigStats.at.config_conflict);
        logger.warning(
          `the discovered configuration of the filter '${shownName(this.name)}' cannot be used in this chain: ${prepared}`,
        );
      }
    }
    this.#context.publish({ statScopes: use.scopes });
    if (this.#isSettled) ready();
  }

  remove(use: ChainUse): void {
    this.#uses.delete(use);
  }

  update(update: Update<TypedExtensionConfig>): readonly Rejection[] {
    const rejections = this.#use(update);
    this.#settle();
    return rejections;
  }

  fetchTimedOut(): void {
    this.#count(ExtensionConfigStats.at.config_fail);
    logger.warning(`the configuration of the filter '${shownName(this.name)}' did not arrive in time`);
    this.#settle();
  }

  close(): void {
    this.#subscription.close();
    this.#context.store.removeScope(this.#scope);
  }

  #use({ resources, refused: unusable, removed, isComplete, version }: Update<TypedExtensionConfig>): Rejection[] {
    const isThis = ({ name }: { readonly name: string }) => name === this.name;
    const resource = resources.find(isThis);
    if (resource !== undefined) return this.#take(resource);
    // A refusal without a name may concern this resource.
    const refusal = unusable.find((each) => isThis(each) || each.name === '');
    if (refusal !== undefined) {
      this.#state = refused(this.#state, refusal);
      this.#count(ExtensionConfigStats.at.config_fail);
    } else if (removed.includes(this.name)) {
      this.#withdraw();
    } else if (isComplete) {
      // A resource that is not mentioned is not removed: state-of-the-world ECDS has no removals.
      const details = `the update has no configuration of the filter '${this.name}'`;
      this.#state = refused(this.#state, { version, details, message: undefined });
      this.#count(ExtensionConfigStats.at.config_fail);
      return [{ name: this.name, details }];
    }
    return [];
  }

  #take(resource: Resource<TypedExtensionConfig>): Rejection[] {
    if (resource.message === this.#resource?.message) {
      this.#state = accepted(resource, this.#state.lastUpdated);
      this.#resource = resource;
      return [];
    }
    const config = resource.message.typed_config;
    const uses = [...this.#uses.keys()];
    const prepared = config === undefined ? 'typed_config is missing' : prepareFor(uses, config);
    if (typeof prepared === 'string') {
      const rejection = { name: this.name, details: messageWithoutSecrets(prepared, config) };
      this.#state = rejected(this.#state, resource, rejection);
      this.#count(ExtensionConfigStats.at.config_fail);
      return [rejection];
    }
    this.#state = accepted(resource);
    this.#resource = resource;
    this.#publish(uses);
    for (const each of prepared) each.use();
    this.#count(ExtensionConfigStats.at.config_reload);
    logger.info(
      `ecds: the filter '${shownName(this.name)}' has the configuration of version '${shownName(resource.version)}'`,
    );
    return [];
  }

  /** Returns all chains to their default configuration, or to none. */
  #withdraw(): void {
    this.#state = DOES_NOT_EXIST;
    if (this.#resource === undefined) return;
    this.#resource = undefined;
    const uses = [...this.#uses.keys()];
    for (const use of uses) {
      try {
        use.withdraw();
      } catch (error) {
        logger.error(
          `the default configuration of the filter '${shownName(this.name)}' cannot be used: ${messageOf(error)}`,
        );
      }
    }
    this.#publish(uses);
    logger.info(`ecds: the configuration of the filter '${shownName(this.name)}' is removed`);
  }

  #publish(uses: readonly ChainUse[]): void {
    const scopes = Object.assign({}, ...uses.map((use) => use.scopes));
    this.#context.publish({ statScopes: scopes, filterConfigs: [this.snapshot] });
  }

  #count(at: number): void {
    this.#context.store.scope(this.#scope).increment(at);
  }

  #settle(): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    for (const ready of this.#uses.values()) ready();
  }
}

/** Prepares the configuration for all chains. Returns the reason when one of them cannot use it; nothing is prepared then. */
function prepareFor(uses: readonly ChainUse[], config: Any): PreparedConfig[] | string {
  const prepared: PreparedConfig[] = [];
  try {
    const extensions = uses.map((use) => use.extensionOf(config));
    uses.forEach((use, index) => {
      prepared.push(use.prepare(extensions[index]!, config));
    });
    return prepared;
  } catch (error) {
    for (const each of prepared) each.discard();
    return messageOf(error);
  }
}
