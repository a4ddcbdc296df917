// A new or changed listener that is not in use yet, because it waits for something such as its routes.

import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Listener } from '../../../config/generated/api.js';
import { InitManager } from '../../init/init-manager.js';
import type { PrimaryChain } from '../version/primary-chain.js';
import type { ListenerSpec, PrimaryListener } from '../version/primary-listener.js';

export class ListenerUpdate {
  readonly spec: ListenerSpec;
  readonly init: InitManager;
  /** A new version; or the version in use if only its filter chains change. */
  readonly listener: PrimaryListener;
  /** The new filter chains of the version in use; undefined when `listener` is a new version. */
  readonly chains: readonly PrimaryChain[] | undefined;
  /** It has been published to the workers. */
  isPublished = false;
  /** Resolves with undefined when the update is in use, or with the reason when it never will be. */
  readonly outcome: Promise<unknown>;
  /** Called when the update is in use; with `error` when it never will be. */
  settle!: (error?: unknown) => void;

  constructor(
    spec: ListenerSpec,
    init: InitManager,
    listener: PrimaryListener,
    chains: readonly PrimaryChain[] | undefined,
  ) {
    this.spec = spec;
    this.init = init;
    this.listener = listener;
    this.chains = chains;
    this.outcome = new Promise((resolve) => {
      this.settle = resolve;
    });
  }

  /** Undefined when only the filter chains of the version in use change. */
  get newVersion(): PrimaryListener | undefined {
    return this.chains === undefined ? this.listener : undefined;
  }

  /** Chains that the version in use does not have. */
  get newChains(): PrimaryChain[] {
    return (this.chains ?? []).filter((chain) => !this.listener.chains.includes(chain));
  }

  /** Discards an update that was never published. */
  discard(): void {
    this.newVersion?.discard();
    for (const chain of this.newChains) chain.discard();
  }
}

/** Returns the init manager for an update of a listener, with the name that /init_dump shows. */
export function initManagerOf(name: string, config: Listener): InitManager {
  const hash = createHash('sha256').update(JSON.stringify(config)).digest().readBigUInt64BE();
  return new InitManager(`Listener-local-init-manager ${name} ${hash}`);
}

/** Returns whether only filter chains differ, and fields without effect on traffic: the version can stay then. */
export function changesOnlyChains(before: Listener, after: Listener): boolean {
  return isDeepStrictEqual(withoutChains(before), withoutChains(after));
}

function withoutChains(config: Listener): Listener {
  const { default_filter_chain: _default, filter_chains: _chains, metadata: _metadata, ...rest } = config;
  return rest;
}
