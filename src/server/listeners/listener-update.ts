// A listener, or another configuration of one, that is not in use yet: it waits for what it needs, such as its routes.

import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Listener } from '../../config/generated/api.js';
import { InitManager } from '../init/init-manager.js';
import type { PrimaryChain } from './primary-chain.js';
import type { ListenerSpec, PrimaryListener } from './primary-listener.js';

export class ListenerUpdate {
  readonly spec: ListenerSpec;
  readonly init: InitManager;
  /** A new version; with `chains` the one that is in use. */
  readonly listener: PrimaryListener;
  /** What that one's filter chains become; undefined: it is a new version. */
  readonly chains: readonly PrimaryChain[] | undefined;
  /** Workers have been told to build it. */
  isPublished = false;
  /** Resolves when it is in use, or is not going to be: with why not. */
  readonly outcome: Promise<unknown>;
  #settle!: (error: unknown) => void;

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
      this.#settle = resolve;
    });
  }

  /** Those that the version in use does not have. */
  get newChains(): PrimaryChain[] {
    return (this.chains ?? []).filter((chain) => !this.listener.chains.includes(chain));
  }

  /** It is in use; with `error` it is not, and will not be. */
  settle(error?: unknown): void {
    this.#settle(error);
  }

  /** It is not wanted any more; no worker has been told of it. */
  discard(): void {
    if (this.chains === undefined) this.listener.discard();
    else for (const chain of this.newChains) chain.discard();
  }
}

/** What an update of a listener waits for, as /init_dump names it. */
export function initManagerOf(name: string, config: Listener): InitManager {
  const hash = createHash('sha256').update(JSON.stringify(config)).digest().readBigUInt64BE();
  return new InitManager(`Listener-local-init-manager ${name} ${hash}`);
}

/** Whether nothing differs but filter chains, and what says nothing about traffic: the version can go on. */
export function changesChainsAlone(before: Listener, after: Listener): boolean {
  return isDeepStrictEqual(withoutChains(before), withoutChains(after));
}

function withoutChains(config: Listener): Listener {
  const { default_filter_chain: _default, filter_chains: _chains, metadata: _metadata, ...rest } = config;
  return rest;
}
