// One version of a listener as the primary keeps it: its sockets, its filter chains, and what each worker is told of it. An
// update of its filter chains alone leaves the version what it is, and changes those.

import { isDeepStrictEqual } from 'node:util';
import { callExtension } from '../../../common/errors/defects.js';
import { bufferLimitBytes } from '../../../config/fields/buffer-limit.js';
import type { FilterChain, Listener } from '../../../config/generated/api.js';
import type { ListenerIdentity } from '../../../extensions/factories.js';
import { type Address, addressText } from '../../../io/addresses/address.js';
import type { NativeShim } from '../../../io/shim.js';
import type { DrainWindow } from '../../../listener/drain-window.js';
import type { Offer } from '../../../restart/parent-end.js';
import { ListenerStats, ListenerWorkerStats } from '../../../stats/layouts/listener.js';
import { scopePrefix } from '../../../stats/scope-prefix.js';
import type { ScopeRequest } from '../../../stats/store.js';
import type { InlineRoutesSnapshot, ListenerSnapshot, WorkerSockets } from '../../../worker/messages/messages.js';
import type { DynamicState } from '../../../xds/dynamic-state.js';
import type { InitManager } from '../../init/init-manager.js';
import type { HeldScopes } from '../../workers/worker-scopes.js';
import { type KnownToWorkers, newId } from './known-to-workers.js';
import {
  copySockets,
  type FormerSockets,
  isBoundLike,
  type ListenSockets,
  listenAddress,
  listenIfPossible,
  noSockets,
  openListenSockets,
  type SocketLineage,
  socketTraits,
  startListening,
} from './listen-sockets.js';
import type { ListenerBlocks } from './listener-blocks.js';
import { type ChainMakers, PrimaryChain } from './primary-chain.js';

/** What a version is made of. */
export interface ListenerSpec {
  readonly name: string;
  readonly config: Listener;
  /** Of the bootstrap: LDS cannot change it. */
  readonly isStatic: boolean;
  /** Its place among the listeners that the server was started with; undefined: it is none of them. */
  readonly number: number | undefined;
  /** Without what is secret. */
  readonly shown: object;
  readonly state: DynamicState;
}

export interface ListenerMakers extends ChainMakers {
  readonly shim: NativeShim;
  readonly concurrency: number;
  readonly blocks: ListenerBlocks;
  /** A process of the same hot restart may have bound what this one is to bind. */
  isBesideAnother(): boolean;
}

/** How far a version is with its sockets. */
type State =
  /** They are open, and nobody can connect. */
  | 'bound'
  /** Workers accept. */
  | 'listening'
  /** Workers have them and do not accept: a child process does, at the same sockets. */
  | 'suspended'
  /** Workers are given them no longer; they are open until those that have them have been told. */
  | 'stopped'
  /** The same for one that has not listened: nobody has connected, and nobody will. */
  | 'useless'
  | 'closed';

export class PrimaryListener implements KnownToWorkers {
  /** Unique in the process. */
  readonly id = newId();
  readonly name: string;
  /** Of the name, in the shared words; held until free(). */
  readonly block: number;
  readonly #makers: ListenerMakers;
  readonly #statToken: string;
  readonly #scopes: HeldScopes;
  #spec: ListenerSpec;
  #chains: readonly PrimaryChain[] = [];
  #sockets: ListenSockets;
  /** The last ones of them, which a child process has bound. */
  #received = 0;
  #state: State;
  /** `address` as text, of the address that it was made of. */
  #addressText = '';
  #addressOf: Address | undefined;

  /**
   * Binds its sockets, or takes over `former`; at `address`, if it is given, which is where a version before it has got port 0.
   * Throws ListenError or what makes a filter unusable, with nothing left.
   */
  constructor(
    spec: ListenerSpec,
    makers: ListenerMakers,
    init: InitManager,
    former: FormerSockets | undefined,
    address?: Address,
  ) {
    const { config, name } = spec;
    const { blocks, concurrency, scopes, shim } = makers;
    this.#spec = spec;
    this.#makers = makers;
    this.name = name;
    const undo: (() => void)[] = [];
    try {
      this.block = blocks.hold(name);
      undo.push(() => blocks.free(name));
      this.#sockets = bindsToPort(config)
        ? openListenSockets(shim, config, {
            workers: concurrency,
            former,
            address,
            keepsBoundPath: !spec.isStatic && makers.isBesideAnother(),
          })
        : noSockets(config);
      this.#state = bindsToPort(config) ? 'bound' : 'listening';
      undo.push(() => this.close());
      this.#statToken = scopePrefix(config.stat_prefix || addressText(this.#sockets.address));
      this.#scopes = scopes.hold(this.#ownScopes());
      undo.push(() => this.#scopes.discard());
      this.#chains = this.makeChains(config, init);
    } catch (error) {
      for (const giveBack of undo.reverse()) giveBack();
      throw error;
    }
  }

  get config(): Listener {
    return this.#spec.config;
  }

  get spec(): ListenerSpec {
    return this.#spec;
  }

  get chains(): readonly PrimaryChain[] {
    return this.#chains;
  }

  /** Where it listens: port 0 has become a port. */
  get address(): Address {
    return this.#sockets.address;
  }

  /** It, as text: it is compared with that of each other listener. */
  get addressText(): string {
    const { address } = this.#sockets;
    if (this.#addressOf !== address) {
      this.#addressOf = address;
      this.#addressText = addressText(address);
    }
    return this.#addressText;
  }

  /** Of its own scope of stats. */
  get statPrefix(): string {
    return `listener.${this.#statToken}.`;
  }

  get isStopped(): boolean {
    return this.#state !== 'bound' && this.#state !== 'listening';
  }

  /** A child process accepts at its sockets, which stay open here. */
  get isSuspended(): boolean {
    return this.#state === 'suspended';
  }

  /** It has its address: they are open. */
  get hasSockets(): boolean {
    return this.#state !== 'closed' && this.#sockets.fds.length > 0;
  }

  /** Another version may go on with them. */
  get sharesSockets(): boolean {
    return this.hasSockets && this.#state !== 'useless';
  }

  get isReusePort(): boolean {
    return this.#sockets.isReusePort;
  }

  /** Equal for versions that accept at the same sockets. */
  get lineage(): SocketLineage {
    return this.#sockets.lineage;
  }

  /** Those that were bound beside the ones of a parent process. */
  get furtherSockets(): readonly number[] {
    return this.#sockets.fds.slice(this.lineage.ofParent?.count);
  }

  /** Its sockets, for another version. Throws ListenError. */
  shareSockets(): FormerSockets {
    return copySockets(this.#makers.shim, this.#sockets);
  }

  /**
   * Chains of another configuration of this version: those that are as they were are the same, the others are new. Throws, with
   * nothing left, when a filter cannot be used as it is configured.
   */
  makeChains(config: Listener, init: InitManager): PrimaryChain[] {
    const left = new Set(this.#chains);
    const chains: PrimaryChain[] = [];
    const made: PrimaryChain[] = [];
    try {
      for (const { chain, isDefault } of configuredChains(config)) {
        const same = [...left].find((each) => each.isDefault === isDefault && isDeepStrictEqual(each.config, chain));
        if (same !== undefined) left.delete(same);
        else made.push(new PrimaryChain(chain, isDefault, this.#identity(config), this.#makers, init));
        chains.push(same ?? made.at(-1)!);
      }
      return chains;
    } catch (error) {
      for (const chain of made) chain.discard();
      throw error;
    }
  }

  /** An update of its filter chains. Returns those that take no more connections. */
  replaceChains(spec: ListenerSpec, chains: readonly PrimaryChain[]): PrimaryChain[] {
    const left = this.#chains.filter((chain) => !chains.includes(chain));
    this.#spec = spec;
    this.#chains = chains;
    return left;
  }

  /**
   * Checks another configuration, of which only routes differ that stand in connection managers. What it returns puts them in
   * place, and gives what workers are to be told. Throws BatonError when they cannot be used.
   */
  prepareRoutes(spec: ListenerSpec): () => InlineRoutesSnapshot[] {
    const configs = configuredChains(spec.config);
    const changes = this.#chains.flatMap((chain, index) => {
      const { chain: config } = configs[index]!;
      return isDeepStrictEqual(config, chain.config) ? [] : [chain.prepareRoutes(config)];
    });
    return () => {
      this.#spec = spec;
      return changes.map((change) => ({ listener: this.id, ...change() }));
    };
  }

  /** Its place in the bootstrap is another one. */
  renumber(number: number | undefined): void {
    this.#spec = { ...this.#spec, number };
  }

  /** Its scopes, and those of filters of `chains`, by prefix. */
  scopesWith(chains: readonly PrimaryChain[]): HeldScopes['refs'] {
    return Object.assign({}, this.#scopes.refs, ...chains.map(({ scopes }) => scopes.refs));
  }

  /** With `chains` for new connections. */
  snapshot(drain: DrainWindow | undefined, chains: readonly PrimaryChain[]): ListenerSnapshot {
    const { fds, isShared } = this.#sockets;
    return {
      id: this.id,
      name: this.name,
      config: { ...this.config, filter_chains: undefined, default_filter_chain: undefined },
      chains: chains.map(({ snapshot }) => snapshot),
      statToken: this.#statToken,
      block: this.block,
      // Each worker copies its own before any of them listens: want of descriptors is known before somebody can connect.
      fds: this.isStopped && !this.isSuspended ? [] : fds,
      isShared,
      isListening: this.#state === 'listening',
      drain,
    };
  }

  /** All its sockets listen from now on. Throws ListenError. */
  startListening(): void {
    // With bind_to_port: false there is none.
    if (this.isStopped || this.#sockets.fds.length === 0) return;
    this.#sockets = startListening(this.#makers.shim, this.config, this.#sockets);
    this.#state = 'listening';
  }

  /** A child process accepts in its place. */
  suspend(): void {
    if (this.#state === 'listening') this.#state = 'suspended';
  }

  /**
   * No child process accepts at its sockets, nor will one: all of them listen as this process wants them to, those among them that
   * the child has bound. Throws ListenError.
   */
  resume(): void {
    if (this.#state !== 'suspended' && this.#state !== 'listening') return;
    const { shim } = this.#makers;
    const { fds } = this.#sockets;
    if (this.#state === 'suspended') {
      const own = { ...this.#sockets, fds: fds.slice(0, fds.length - this.#received) };
      // The child may have changed the permissions of a Unix socket's file.
      const mode = this.config.address?.pipe?.mode ? UNKNOWN_MODE : own.mode;
      this.#sockets = { ...startListening(shim, this.config, { ...own, mode }), fds };
      this.#state = 'listening';
    }
    listenIfPossible(shim, this.config, fds.slice(fds.length - this.#received));
  }

  /** Binds its sockets once more, which were closed; they do not listen yet. Throws ListenError. */
  reopen(): void {
    if (this.#state !== 'closed') return;
    const { concurrency: workers, shim } = this.#makers;
    const { address } = this.#sockets;
    const options = { workers, former: undefined, address, keepsBoundPath: true };
    this.#sockets = openListenSockets(shim, this.config, options);
    this.#received = 0;
    this.#state = 'bound';
  }

  /**
   * Sockets that a child process has bound beside those that it was given, and that may not listen: they are this version's now, or
   * are closed if they are bound elsewhere. Returns what workers are to be told of its sockets; undefined: nothing.
   */
  addSockets(fds: readonly number[]): WorkerSockets | undefined {
    const { shim } = this.#makers;
    const [first] = this.#sockets.fds;
    const added: number[] = [];
    for (const fd of fds) {
      if (this.hasSockets && this.isReusePort && isBoundLike(shim, fd, first!)) added.push(fd);
      else shim.closeDescriptor(fd);
    }
    if (added.length === 0) return undefined;
    const from = this.#sockets.fds.length;
    this.#received += added.length;
    this.#sockets = { ...this.#sockets, fds: [...this.#sockets.fds, ...added] };
    return { ...this.sockets, from };
  }

  /** A child process has bound some of its sockets. */
  get hasReceived(): boolean {
    return this.#received > 0;
  }

  /** All that workers are to have. */
  get sockets(): WorkerSockets {
    const { fds, isShared } = this.#sockets;
    return { id: this.id, fds, isShared, from: 0 };
  }

  /** Its sockets for a child process; undefined when it has none that are open. */
  offer(id: number): Offer | undefined {
    const { address, fds, isReusePort } = this.#sockets;
    if ((this.#state !== 'listening' && this.#state !== 'suspended') || fds.length === 0) return undefined;
    return {
      id,
      isAdmin: false,
      name: this.config.name ?? '',
      configured: addressText(listenAddress(this.config.address)),
      real: addressText(address),
      traits: socketTraits(this.config),
      isReusePort,
      fds,
    };
  }

  /** Workers are given its sockets no longer. Those that have them are told on their own. */
  stop(): void {
    if (this.#state === 'bound') this.#state = 'useless';
    if (this.#state === 'listening' || this.#state === 'suspended') this.#state = 'stopped';
  }

  /** Closes the sockets, which no worker is about to copy any more. */
  close(): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    for (const fd of this.#sockets.fds) this.#makers.shim.closeDescriptor(fd);
  }

  /** Its chains with it. It stops, too, if it has not yet. */
  retire(): string[] {
    this.stop();
    return [this.#scopes, ...this.#chains].flatMap((each) => each.retire());
  }

  free(): void {
    this.close();
    for (const chain of this.#chains) chain.free();
    this.#scopes.free();
    this.#makers.blocks.free(this.name);
  }

  /** Both at once: no worker has been told of it. */
  discard(): void {
    this.retire();
    this.free();
  }

  #ownScopes(): ScopeRequest[] {
    const requests: ScopeRequest[] = [{ prefix: this.statPrefix, layout: ListenerStats }];
    for (let index = 0; index < this.#makers.concurrency; index++) {
      requests.push({ prefix: `${this.statPrefix}worker_${index}.`, layout: ListenerWorkerStats });
    }
    for (const { typed_config: filter } of this.config.listener_filters ?? []) {
      const extension = this.#makers.extensions.listenerFilter(filter!);
      requests.push(...callExtension('scopes', extension.name, () => extension.scopes?.(filter!) ?? []));
    }
    return requests;
  }

  #identity(config: Listener): ListenerIdentity {
    const bufferLimit = bufferLimitBytes(config.per_connection_buffer_limit_bytes);
    return { name: this.name, statToken: this.#statToken, bufferLimit };
  }
}

/** Other than every mode that a listener may want. */
const UNKNOWN_MODE = -1;

export function bindsToPort(config: Listener): boolean {
  return config.bind_to_port ?? true;
}

function configuredChains({ filter_chains = [], default_filter_chain: byDefault }: Listener) {
  const chains = filter_chains.map((chain: FilterChain) => ({ chain, isDefault: false }));
  if (byDefault !== undefined) chains.push({ chain: byDefault, isDefault: true });
  return chains;
}
