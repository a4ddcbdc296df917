// One version of a listener on the primary: its sockets, its filter chains, and its snapshot for the workers. An update that
// changes only filter chains keeps the version and replaces its chains.

import { isDeepStrictEqual } from 'node:util';
import { callExtension } from '../../../common/errors/defects.js';
import { bindsToPort } from '../../../config/fields/binds-to-port.js';
import { bufferLimitBytes } from '../../../config/fields/buffer-limit.js';
import { isUdp } from '../../../config/fields/udp.js';
import type { FilterChain, Listener } from '../../../config/generated/api.js';
import type { ListenerIdentity, PrimaryPart } from '../../../extensions/factories.js';
import { type Address, addressText } from '../../../io/addresses/address.js';
import type { NativeShim } from '../../../io/shim.js';
import type { DrainWindow } from '../../../listener/drain-window.js';
import type { Offer } from '../../../restart/parent-end.js';
import { ListenerStats, ListenerWorkerStats } from '../../../stats/layouts/listener.js';
import { UdpListenerStats } from '../../../stats/layouts/udp.js';
import { scopePrefix } from '../../../stats/scope-prefix.js';
import type { ScopeRequest } from '../../../stats/store.js';
import type { InlineRoutesSnapshot, ListenerSnapshot, WorkerSockets } from '../../../worker/messages/messages.js';
import type { DynamicState } from '../../../xds/dynamic-state.js';
import type { InitManager } from '../../init/init-manager.js';
import type { HeldScopes } from '../../workers/worker-scopes.js';
import { claimText } from './claimed-address.js';
import {
  copySockets,
  isBoundLike,
  type ListenSockets,
  listenerAddress,
  listenIfPossible,
  noSockets,
  openListenSockets,
  type ReusedSockets,
  type SocketLineage,
  socketTraits,
  startListening,
} from './listen-sockets.js';
import type { ListenerBlocks } from './listener-blocks.js';
import { type ChainContext, PrimaryChain } from './primary-chain.js';
import { newId, type PublishedItem } from './published-item.js';

/** The parameters of a version. */
export interface ListenerSpec {
  readonly name: string;
  readonly config: Listener;
  /** It comes from the bootstrap; LDS cannot change it. */
  readonly isStatic: boolean;
  /** Its index in the bootstrap's list at the start; undefined for other listeners. */
  readonly number: number | undefined;
  /** The configuration without secrets. */
  readonly shown: object;
  readonly state: DynamicState;
}

export interface ListenerContext extends ChainContext {
  readonly shim: NativeShim;
  readonly concurrency: number;
  readonly blocks: ListenerBlocks;
  /** Returns whether another process of the same hot restart may have bound an address that this one binds. */
  isInHotRestart(): boolean;
}

/** The state of a version's sockets. */
type State =
  /** Open; no client can connect. */
  | 'bound'
  /** Workers accept. */
  | 'listening'
  /** Workers have the sockets but do not accept: a child process accepts on them. */
  | 'suspended'
  /** No further worker receives the sockets; they stay open until the workers that have them are notified. */
  | 'stopped'
  /** The same, for sockets that never listened: no client has connected or ever will. */
  | 'abandoned'
  | 'closed';

export class PrimaryListener implements PublishedItem {
  /** Unique in the process. */
  readonly id = newId();
  readonly name: string;
  /** The block of its name in the shared words; held until free(). */
  readonly block: number;
  readonly #context: ListenerContext;
  readonly #statToken: string;
  readonly #scopes: HeldScopes;
  /** Of its access loggers. */
  readonly #logParts: PrimaryPart;
  #spec: ListenerSpec;
  #chains: readonly PrimaryChain[] = [];
  #sockets: ListenSockets;
  /** Number of sockets at the end of the list that a child process has bound. */
  #received = 0;
  #state: State;
  /** `addressText`, and the address from which it was made. */
  #addressText = '';
  #addressOf: Address | undefined;

  /**
   * Binds its sockets, or takes over `reused`; at `address`, if given, which is where an earlier version was bound with port 0.
   * Throws ListenError or the error of an unusable filter, with nothing left behind.
   */
  constructor(
    spec: ListenerSpec,
    context: ListenerContext,
    init: InitManager,
    reused: ReusedSockets | undefined,
    address?: Address,
  ) {
    const { config, name } = spec;
    const { blocks, concurrency, scopes, shim } = context;
    this.#spec = spec;
    this.#context = context;
    this.name = name;
    const undo: (() => void)[] = [];
    try {
      this.block = blocks.hold(name);
      undo.push(() => blocks.free(name));
      this.#sockets = bindsToPort(config)
        ? openListenSockets(shim, config, {
            workers: concurrency,
            reused,
            address,
            keepsBoundPath: !spec.isStatic && context.isInHotRestart(),
          })
        : noSockets(config);
      this.#state = bindsToPort(config) ? 'bound' : 'listening';
      undo.push(() => this.close());
      // As in Envoy the address is the configured one: port 0 stays 0.
      this.#statToken = scopePrefix(config.stat_prefix || nameInStats(config));
      this.#scopes = scopes.hold(this.#ownScopes());
      undo.push(() => this.#scopes.discard());
      this.#logParts = context.parts.createForLogs(config.access_log ?? []);
      undo.push(() => this.#logParts.close());
      this.#chains = this.createChains(config, init);
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

  /** The bound address: port 0 has become a port. */
  get address(): Address {
    return this.#sockets.address;
  }

  /** The address as text, which is compared with that of every other listener. */
  get addressText(): string {
    const { address } = this.#sockets;
    if (this.#addressOf !== address) {
      this.#addressOf = address;
      this.#addressText = claimText(this.config, address);
    }
    return this.#addressText;
  }

  /** Prefix of the listener's stats. */
  get statPrefix(): string {
    return `listener.${this.#statToken}.`;
  }

  get isStopped(): boolean {
    return this.#state !== 'bound' && this.#state !== 'listening';
  }

  /** A child process accepts on its sockets, which stay open here. */
  get isSuspended(): boolean {
    return this.#state === 'suspended';
  }

  /** Its sockets are open: it has its address. */
  get hasSockets(): boolean {
    return this.#state !== 'closed' && this.#sockets.fds.length > 0;
  }

  /** Another version may share its sockets. */
  get sharesSockets(): boolean {
    return this.hasSockets && this.#state !== 'abandoned';
  }

  get isReusePort(): boolean {
    return this.#sockets.isReusePort;
  }

  /** Identical for versions that accept on the same sockets. */
  get lineage(): SocketLineage {
    return this.#sockets.lineage;
  }

  /** The sockets bound beside those of a parent process. */
  get furtherSockets(): readonly number[] {
    return this.#sockets.fds.slice(this.lineage.ofParent?.count);
  }

  /** Returns duplicates of its sockets for another version. Throws ListenError. */
  shareSockets(): ReusedSockets {
    return copySockets(this.#context.shim, this.#sockets);
  }

  /**
   * Returns the chains of another configuration of this version: the current ones where nothing has changed, else new ones.
   * Throws, with nothing left behind, when a filter cannot be used as configured.
   */
  createChains(config: Listener, init: InitManager): PrimaryChain[] {
    const left = new Set(this.#chains);
    const chains: PrimaryChain[] = [];
    const made: PrimaryChain[] = [];
    try {
      for (const { chain, isDefault } of configuredChains(config)) {
        const same = [...left].find((each) => each.isDefault === isDefault && isDeepStrictEqual(each.config, chain));
        if (same !== undefined) left.delete(same);
        else made.push(new PrimaryChain(chain, isDefault, this.#identity(config), this.#context, init));
        chains.push(same ?? made.at(-1)!);
      }
      return chains;
    } catch (error) {
      for (const chain of made) chain.discard();
      throw error;
    }
  }

  /** Replaces the filter chains. Returns those that receive no further connections. */
  replaceChains(spec: ListenerSpec, chains: readonly PrimaryChain[]): PrimaryChain[] {
    const left = this.#chains.filter((chain) => !chains.includes(chain));
    this.#spec = spec;
    this.#chains = chains;
    return left;
  }

  /**
   * Checks another configuration that differs only in routes of connection managers. Returns a function that applies them and
   * returns what to publish. Throws BatonError when they cannot be used.
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

  /** Sets its new index in the bootstrap. */
  renumber(number: number | undefined): void {
    this.#spec = { ...this.#spec, number };
  }

  /** Returns its scopes and those of the filters of `chains`, by prefix. */
  scopesWith(chains: readonly PrimaryChain[]): HeldScopes['refs'] {
    return Object.assign({}, this.#scopes.refs, ...chains.map(({ scopes }) => scopes.refs));
  }

  /** Returns the snapshot with `chains` for new connections. */
  snapshot(drain: DrainWindow | undefined, chains: readonly PrimaryChain[]): ListenerSnapshot {
    const { fds, isShared } = this.#sockets;
    return {
      id: this.id,
      name: this.name,
      config: { ...this.config, filter_chains: undefined, default_filter_chain: undefined },
      chains: chains.map(({ snapshot }) => snapshot),
      statToken: this.#statToken,
      block: this.block,
      // Workers duplicate the sockets before any of them listens: lack of descriptors shows before a client can connect.
      fds: this.isStopped && !this.isSuspended ? [] : fds,
      isShared,
      isListening: this.#state === 'listening',
      drain,
    };
  }

  /** Makes all its sockets listen. Throws ListenError. */
  startListening(): void {
    // There are no sockets with bind_to_port: false.
    if (this.isStopped || this.#sockets.fds.length === 0) return;
    this.#sockets = startListening(this.#context.shim, this.config, this.#sockets);
    this.#state = 'listening';
  }

  /** Called when a child process accepts in its place. */
  suspend(): void {
    if (this.#state === 'listening') this.#state = 'suspended';
  }

  /**
   * Called when no child process accepts on its sockets any more. All of them listen as configured here, including those that the
   * child has bound. Throws ListenError.
   */
  resume(): void {
    if (this.#state !== 'suspended' && this.#state !== 'listening') return;
    const { shim } = this.#context;
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

  /** Binds its closed sockets again; they do not listen yet. Throws ListenError. */
  reopen(): void {
    if (this.#state !== 'closed') return;
    const { concurrency: workers, shim } = this.#context;
    const { address } = this.#sockets;
    const options = { workers, reused: undefined, address, keepsBoundPath: true };
    this.#sockets = openListenSockets(shim, this.config, options);
    this.#received = 0;
    this.#state = 'bound';
  }

  /**
   * Adds sockets that a child process has bound beside those that it was given, which may not listen yet; closes those bound
   * elsewhere. Returns the sockets to publish to workers; undefined when there are none.
   */
  addSockets(fds: readonly number[]): WorkerSockets | undefined {
    const { shim } = this.#context;
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

  /** All sockets that workers should have. */
  get sockets(): WorkerSockets {
    const { fds, isShared } = this.#sockets;
    return { id: this.id, fds, isShared, from: 0 };
  }

  /** Returns its sockets as offered to a child process; undefined when none are open. */
  offer(id: number): Offer | undefined {
    const { address, fds, isReusePort } = this.#sockets;
    if ((this.#state !== 'listening' && this.#state !== 'suspended') || fds.length === 0) return undefined;
    return {
      id,
      isAdmin: false,
      name: this.config.name ?? '',
      configured: claimText(this.config, listenerAddress(this.config)),
      real: claimText(this.config, address),
      traits: socketTraits(this.config),
      isReusePort,
      fds,
    };
  }

  /** Stops giving its sockets to workers. Workers that have them are notified separately. */
  stop(): void {
    if (this.#state === 'bound') this.#state = 'abandoned';
    if (this.#state === 'listening' || this.#state === 'suspended') this.#state = 'stopped';
  }

  /** Closes the sockets. Called when no worker is about to duplicate them. */
  close(): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    for (const fd of this.#sockets.fds) this.#context.shim.closeDescriptor(fd);
  }

  /** Retires the version with its chains. Stops it first if needed. */
  retire(): string[] {
    this.stop();
    return [this.#scopes, ...this.#chains].flatMap((each) => each.retire());
  }

  free(): void {
    this.close();
    for (const chain of this.#chains) chain.free();
    this.#logParts.close();
    this.#scopes.free();
    this.#context.blocks.free(this.name);
  }

  /** Retires and frees a version that was never published. */
  discard(): void {
    this.retire();
    this.free();
  }

  #ownScopes(): ScopeRequest[] {
    const requests: ScopeRequest[] = [{ prefix: this.statPrefix, layout: ListenerStats }];
    for (let index = 0; index < this.#context.concurrency; index++) {
      requests.push({ prefix: `${this.statPrefix}worker_${index}.`, layout: ListenerWorkerStats });
    }
    if (isUdp(this.config)) return [...requests, ...this.#udpScopes()];
    for (const { typed_config: filter } of this.config.listener_filters ?? []) {
      const extension = this.#context.extensions.listenerFilter(filter!);
      requests.push(...callExtension('scopes', extension.name, () => extension.scopes?.(filter!) ?? []));
    }
    return requests;
  }

  #udpScopes(): ScopeRequest[] {
    const { extensions } = this.#context;
    const requests: ScopeRequest[] = [{ prefix: `${this.statPrefix}udp.`, layout: UdpListenerStats }];
    for (const { typed_config: filter } of this.config.listener_filters ?? []) {
      const extension = extensions.udpListenerFilter(filter!);
      const listener = this.#identity(this.config);
      const scopes = callExtension(
        'scopes',
        extension.name,
        () => extension.scopes?.(filter!, listener, extensions) ?? [],
      );
      requests.push(...scopes);
    }
    return requests;
  }

  #identity(config: Listener): ListenerIdentity {
    const bufferLimit = bufferLimitBytes(config.per_connection_buffer_limit_bytes);
    return { name: this.name, statToken: this.#statToken, bufferLimit };
  }
}

/** Differs from every configurable mode. */
const UNKNOWN_MODE = -1;

function configuredChains({ filter_chains = [], default_filter_chain: byDefault }: Listener) {
  const chains = filter_chains.map((chain: FilterChain) => ({ chain, isDefault: false }));
  if (byDefault !== undefined) chains.push({ chain: byDefault, isDefault: true });
  return chains;
}

/** Returns the listener's part of the names of stats: its address, or `envoy_internal_` with the name of an internal one. */
function nameInStats(config: Listener): string {
  if (config.internal_listener !== undefined) return `envoy_internal_${config.name ?? ''}`;
  return addressText(listenerAddress(config));
}
