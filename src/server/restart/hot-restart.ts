// This process in its series of hot restarts: the child of the previous epoch, and the parent of the next one.

import { setTimeout as pause } from 'node:timers/promises';
import { messageOf } from '../../common/errors/errors.js';
import { onDemand } from '../../common/package/on-demand.js';
import { type Credentials, loadShim, type NativeShim } from '../../io/shim.js';
import { getLogger } from '../../log/logger.js';
import { ChildEnd, type ChildHost } from '../../restart/child-end.js';
import { type Joined, joinParent } from '../../restart/join-parent.js';
import { MessageLink } from '../../restart/link.js';
import { Meeting } from '../../restart/meeting.js';
import type * as Messages from '../../restart/messages.js';
import { type Offer, ParentEnd, type ParentHost } from '../../restart/parent-end.js';
import { distrust, type TrustRules, trustRules } from '../../restart/trust.js';
import { HOT_RESTART_VERSION } from '../../restart/version.js';
import type { TicketKeys } from '../../tls/shared-ticket-keys.js';
import { InheritedSockets } from '../listeners/version/inherited-sockets.js';
import { type EpochFacts, firstEpoch } from './epoch-facts.js';

export interface HotRestartOptions {
  readonly socketPath: string;
  /** --socket-mode as a number. */
  readonly socketMode: number;
  /** Undefined selects an unused base id (--use-dynamic-base-id). */
  readonly baseId: number | undefined;
  readonly epoch: number;
  /** --skip-hot-restart-on-no-parent */
  readonly isParentOptional: boolean;
  /** baton-restarter has started this process: see isSupervised(). */
  readonly isSupervised: boolean;
  /** False with --skip-hot-restart-parent-stats. */
  readonly takesParentStats: boolean;
  readonly parentShutdownTimeS: number;
  /** --hand-over-connections */
  readonly handsOverConnections: boolean;
}

/** The server in the view of its parent and its child. */
export interface RestartedServer
  extends Pick<
      ParentHost,
      'addSockets' | 'childLost' | 'exportStats' | 'handOverConnections' | 'empty' | 'release' | 'reclaim'
    >,
    Pick<ChildHost, 'importStats' | 'parentEnded' | 'takeConnections'> {
  /** Number of workers. */
  readonly concurrency: number;
  /** Returns the keys of session tickets; undefined without any. */
  ticketKeys(): TicketKeys | undefined;
  /** Returns the sockets of listeners and admin; the server keeps the descriptors. */
  offer(): readonly Offer[];
  /** Returns the sockets that listeners have got since then. */
  offerNewSockets(): readonly Offer[];
  /** Sets a callback for more sockets to offer to a starting child. */
  onSockets(listener: () => void): void;
  /** Called when more of the parent's sockets have arrived. */
  socketsReceived(): void;
  /** Called when this process accepts connections, beside the parent, which is notified a moment later. */
  servingStarted(): void;
  /**
   * Called when a child process accepts on these sockets, and answers for admin. Resolves when the admin interface here is
   * silent.
   */
  handOver(taken: ReadonlySet<number>): Promise<void>;
  /** Returns sockets bound beside those of the parent, with the parent's numbers of those. */
  furtherSockets(): Iterable<{ readonly id: number; readonly fds: readonly number[] }>;
  /** Ends the server with this exit status. */
  end(status: number): void;
}

/** Limit for the kernel to close the sockets of a dead parent. */
const PARENT_END_MS = 1000;
const PARENT_POLL_MS = 10;

const logger = getLogger('main');
const loadMessages = onDemand(() => import('../../restart/messages.js'));

export class HotRestart {
  readonly #options: HotRestartOptions;
  readonly #shim: NativeShim;
  readonly #meeting: Meeting;
  readonly #trust: TrustRules;
  #stage: ParentHost['stage'] = 'initializing';
  #facts: EpochFacts;
  #joined: Joined | undefined;
  #child: ChildEnd | undefined;
  #parent: ParentEnd | undefined;
  #server: RestartedServer | undefined;
  /** Pending while it is decided whether this process continues without its parent; undefined while the parent is connected. */
  #parentLost: Promise<void> | undefined;
  #proofRetry: NodeJS.Timeout | undefined;
  #parentStatsImported = () => {};
  /** Resolves when the parent's stats are imported, or never will be. Pending until this process has taken over. */
  readonly parentStatsImported = new Promise<void>((resolve) => {
    this.#parentStatsImported = resolve;
  });
  #isClosed = false;

  private constructor(options: HotRestartOptions, shim: NativeShim, meeting: Meeting, trust: TrustRules) {
    this.#options = options;
    this.#shim = shim;
    this.#meeting = meeting;
    this.#trust = trust;
    this.#facts = firstEpoch(options.epoch);
  }

  /** Binds the sockets of this epoch. Throws BatonError when another process has them. */
  static open(options: HotRestartOptions): HotRestart {
    const { baseId } = options;
    const shim = loadShim();
    const trust = trustRules(options.socketPath.startsWith('@') ? undefined : options.socketMode);
    const distrusts = (credentials: Credentials | undefined) => distrust(credentials, trust);
    const meeting =
      baseId === undefined
        ? Meeting.withUnusedBaseId(shim, options, distrusts)
        : new Meeting(shim, { ...options, baseId }, distrusts);
    // Needed as soon as other threads have loaded the configuration. join() reports a failure.
    if (options.epoch > 0) loadMessages().catch(() => {});
    return new HotRestart(options, shim, meeting, trust);
  }

  get baseId(): number {
    return this.#meeting.options.baseId;
  }

  /** What is known so far about the position of this process in its series. */
  get facts(): EpochFacts {
    return this.#facts;
  }

  /** Connects to the parent and takes its sockets. Rejects with BatonError when that fails, or when `signal` is aborted. */
  async join(signal: AbortSignal): Promise<EpochFacts> {
    const { epoch, isParentOptional, isSupervised } = this.#options;
    const messages = await loadMessages();
    const [own, theirs] = this.#shim.socketPair();
    let isClosed = false;
    // With a copy here, the end of the parent would go unnoticed.
    const closeTheirs = () => {
      if (!isClosed) this.#shim.closeDescriptor(theirs);
      isClosed = true;
    };
    try {
      this.#joined = await joinParent(
        {
          sayHello: () => {
            const hello = messages.encodeHello({ version: HOT_RESTART_VERSION, epoch });
            if (!this.#meeting.sayHello(hello, theirs)) return false;
            closeTheirs();
            return true;
          },
          openLink: (events) => new MessageLink(this.#shim, own, childCodec(messages), events),
          onProof: (listener) => this.#meeting.onProof(listener),
          distrust: (credentials) => distrust(credentials, this.#trust),
          closeDescriptor: (fd) => this.#shim.closeDescriptor(fd),
        },
        { epoch: epoch - 1, isParentOptional, isSupervised, signal },
      );
    } finally {
      closeTheirs();
    }
    if (this.#joined !== undefined) this.#facts = this.#factsOf(this.#joined);
    return this.#facts;
  }

  /** Loads the modules for talking to a child: later the program's files may be replaced, or descriptors short. */
  async load(): Promise<void> {
    try {
      await loadMessages();
    } catch (error) {
      logger.error(`no process can take over from this one yet: ${messageOf(error)}`);
    }
  }

  /** Connects `server` with its parent. From now on it accepts a child. */
  begin(server: RestartedServer): void {
    if (this.#joined !== undefined) {
      this.#child = new ChildEnd(this.#joined, {
        parentLost: (why, isRefusal) => {
          this.#parentLost = this.#handleParentLoss(isRefusal, why, server);
        },
        importStats: (piece) => {
          if (this.#options.takesParentStats) server.importStats(piece);
        },
        connectionWorkers: this.#options.handsOverConnections ? server.concurrency : 0,
        takeConnections: (channels) => server.takeConnections(channels),
        closeDescriptor: (fd) => this.#shim.closeDescriptor(fd),
        takeSockets: (sockets) => {
          this.#facts.parentSockets?.add(sockets);
          server.socketsReceived();
          // The parent has closed its own copies, or is about to.
          if (this.#stage !== 'initializing') this.#facts.parentSockets?.closeRest();
        },
        parentEnded: () => server.parentEnded(),
      });
      const child = this.#child;
      if (this.#facts.parentSockets !== undefined) this.#facts.parentSockets.onRelease = (ids) => child.release(ids);
    }
    this.#server = server;
    const parent = new ParentEnd(this.#parentHost(server));
    this.#parent = parent;
    server.onSockets(() => parent.offerNewSockets());
    this.#meeting.onHello((bytes, fds) => void this.#receiveHello(bytes, fds));
  }

  /** Called when the parent is lost before this process is live: it is dead, or has dropped this one. */
  async #handleParentLoss(isRefusal: boolean, why: string, server: RestartedServer): Promise<void> {
    // Clients wait at the sockets that a dead parent has handed over: only this process can serve them. A live parent serves them
    // itself.
    if (this.#options.isSupervised && !isRefusal && (await this.#isParentGone())) {
      logger.warning(`the parent process was lost before this one was live (${why}); this one continues`);
      return server.parentEnded();
    }
    logger.critical(`the parent process was lost before this one was live (${why})`);
    server.end(1);
  }

  /** Polls, since the kernel closes a dead process's descriptors one by one. */
  async #isParentGone(): Promise<boolean> {
    for (const endMs = performance.now() + PARENT_END_MS; this.#meeting.isParentThere; ) {
      if (performance.now() > endMs) return false;
      await pause(PARENT_POLL_MS);
    }
    return true;
  }

  /** Gives the parent copies of sockets bound beside its own. Resolves when they may listen. */
  async shareSockets(): Promise<void> {
    if (this.#child === undefined) return;
    await this.#parentLost;
    const further = [...this.#server!.furtherSockets()];
    const sockets = further.map(({ fds, id }) => ({ id, count: fds.length }));
    await this.#child.share(
      sockets,
      further.flatMap(({ fds }) => fds),
    );
    if (this.#stage === 'initializing') this.#server!.servingStarted();
  }

  /**
   * Called when the server accepts, and answers for admin: the parent stops doing so. Resolves when it has, takes too long, or is
   * gone.
   */
  async live(): Promise<void> {
    if (this.#stage !== 'initializing') return;
    this.#stage = 'live';
    const { parentSockets } = this.#facts;
    parentSockets?.closeRest();
    const replaced = this.#child?.takeOver(parentSockets?.taken ?? [], this.#options.parentShutdownTimeS);
    void this.refreshStats().then(this.#parentStatsImported);
    await replaced;
  }

  /** Resolves when the parent's latest counts are imported, or when that takes too long. */
  async refreshStats(): Promise<void> {
    if (this.#options.takesParentStats) await this.#child?.refreshStats();
  }

  /** Resolves with whether the parent has no connections left, or there is none. */
  async isParentIdle(): Promise<boolean> {
    return this.#child === undefined || this.#child.isParentIdle();
  }

  /**
   * Called when the server starts to end, and its parent with it. No process can take over from this one any more; its names are
   * free.
   */
  ending(): void {
    this.#stage = 'ending';
    this.#meeting.close();
    this.#child?.close();
    this.#parentStatsImported();
  }

  /** Called when the server has ended. Sends the last counts to the child. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#stage = 'ending';
    await this.#parent?.finish();
    if (this.#child === undefined) this.#joined?.link.close();
    this.#meeting.close();
  }

  #factsOf({ firstStartedMs, generation, sockets, ticketKeys }: Joined): EpochFacts {
    const { epoch, takesParentStats } = this.#options;
    return {
      number: epoch,
      generation: generation + 1,
      startedMs: this.#facts.startedMs,
      firstStartedMs,
      countedSinceMs: takesParentStats ? firstStartedMs : this.#facts.countedSinceMs,
      parentSockets: new InheritedSockets(this.#shim, sockets),
      ticketKeys,
    };
  }

  #parentHost(server: RestartedServer): ParentHost {
    const stage = () => this.#stage;
    return {
      epoch: this.#options.epoch,
      get stage() {
        return stage();
      },
      firstStartedMs: this.#facts.firstStartedMs,
      generation: this.#facts.generation,
      parentShutdownTimeS: this.#options.parentShutdownTimeS,
      ticketKeys: () => server.ticketKeys(),
      offer: () => server.offer(),
      offerNewSockets: () => server.offerNewSockets(),
      addSockets: (id, fds) => server.addSockets(id, fds),
      childLost: () => server.childLost(),
      release: (ids) => server.release(ids),
      reclaim: () => server.reclaim(),
      replaced: (taken) => {
        // First: if the parent saw the end of this process, it would serve again beside the child.
        this.#child?.terminate();
        logger.warning('shutting down admin due to child startup');
        logger.info('closing and draining listeners');
        return server.handOver(taken);
      },
      handOverConnections: (workers) => (this.#options.handsOverConnections ? server.handOverConnections(workers) : []),
      empty: () => server.empty(),
      closeDescriptor: (fd) => this.#shim.closeDescriptor(fd),
      exportStats: () => server.exportStats(),
      end: () => server.end(0),
    };
  }

  /** Called with a datagram from a trusted process that treats this one as its parent. */
  async #receiveHello(bytes: Uint8Array, [fd, ...others]: readonly number[]): Promise<void> {
    this.#closeAll(others);
    if (fd === undefined) return this.#meeting.dropped('it brings no link');
    let isTaken = false;
    try {
      const messages = await loadMessages();
      const hello = messages.decodeHello(bytes);
      // The child trusts the link once it knows which process has the other end.
      this.#prove();
      this.#parent!.receiveHello(hello, (events) => {
        const link = new MessageLink(this.#shim, fd, parentCodec(messages), events);
        isTaken = true;
        return link;
      });
    } catch (error) {
      // An unusable descriptor, such as a file, also ends here.
      if (!isTaken) this.#closeAll([fd]);
      this.#meeting.dropped(messageOf(error));
    }
  }

  /** Retries while the child's socket is full, which other users can cause. At most one retry is pending. */
  #prove(attempts = 0): void {
    clearTimeout(this.#proofRetry);
    if (this.#meeting.prove() || attempts === MAX_PROOFS) return;
    this.#proofRetry = setTimeout(() => {
      try {
        this.#prove(attempts + 1);
      } catch {
        // The child has ended.
      }
    }, PROOF_RETRY_MS).unref();
  }

  #closeAll(fds: readonly number[]): void {
    for (const fd of fds) this.#shim.closeDescriptor(fd);
  }
}

/** The retries last about as long as a child waits for its parent. */
const MAX_PROOFS = 2000;
const PROOF_RETRY_MS = 5;

function childCodec({ encodeToParent, decodeToChild }: typeof Messages) {
  return { encode: encodeToParent, decode: decodeToChild };
}

function parentCodec({ encodeToChild, decodeToParent }: typeof Messages) {
  return { encode: encodeToChild, decode: decodeToParent };
}
