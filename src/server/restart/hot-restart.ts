// This process among those of its line of hot restarts: a child of the epoch before, a parent of the epoch after.

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
import { InheritedSockets } from '../listeners/version/inherited-sockets.js';
import { type EpochFacts, firstEpoch } from './epoch-facts.js';

export interface HotRestartOptions {
  readonly socketPath: string;
  /** --socket-mode as a number. */
  readonly socketMode: number;
  /** Undefined: one that nobody uses (--use-dynamic-base-id). */
  readonly baseId: number | undefined;
  readonly epoch: number;
  /** --skip-hot-restart-on-no-parent */
  readonly isParentOptional: boolean;
  /** baton-restarter has started this process: see isSupervised(). */
  readonly isSupervised: boolean;
  /** Not with --skip-hot-restart-parent-stats. */
  readonly takesParentStats: boolean;
  readonly parentShutdownTimeS: number;
  /** --hand-over-connections */
  readonly handsOverConnections: boolean;
}

/** The server as its parent and its child see it. */
export interface RestartedServer
  extends Pick<
      ParentHost,
      'addSockets' | 'childLost' | 'exportStats' | 'handOverConnections' | 'empty' | 'release' | 'takeBack'
    >,
    Pick<ChildHost, 'importStats' | 'parentEnded' | 'takeConnections'> {
  /** Its workers. */
  readonly concurrency: number;
  /** The sockets of listeners and admin; the descriptors stay the server's. */
  offer(): readonly Offer[];
  /** Those that listeners have got since. */
  offerMore(): readonly Offer[];
  /** Calls back when there is more to offer to a child that begins. */
  onSockets(listener: () => void): void;
  /** Sockets have come that the parent has got since this process began. */
  socketsCame(): void;
  /** Accepts from now on, beside the parent, which learns it a moment later. */
  beginsToServe(): void;
  /** A child process accepts with these sockets, and answers for admin. Resolves when the admin interface here does not any more. */
  handOver(taken: ReadonlySet<number>): Promise<void>;
  /** Sockets that were bound beside those of the parent, by the parent's numbers. */
  furtherSockets(): Iterable<{ readonly id: number; readonly fds: readonly number[] }>;
  /** Ends it with this exit status. */
  end(status: number): void;
}

/** How long the kernel may take to close what a dead parent had. */
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
  /** Resolves when it is clear whether this process goes on without its parent; undefined while it has one. */
  #parentLost: Promise<void> | undefined;
  #proofRetry: NodeJS.Timeout | undefined;
  #parentStatsImported = () => {};
  /** Resolves when stats go on where those of the parent stood, or will not; pending until this process has taken over. */
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

  /** Binds the names of this epoch. Throws BatonError when another process has them. */
  static open(options: HotRestartOptions): HotRestart {
    const { baseId } = options;
    const shim = loadShim();
    const trust = trustRules(options.socketPath.startsWith('@') ? undefined : options.socketMode);
    const distrusts = (credentials: Credentials | undefined) => distrust(credentials, trust);
    const meeting =
      baseId === undefined
        ? Meeting.withUnusedBaseId(shim, options, distrusts)
        : new Meeting(shim, { ...options, baseId }, distrusts);
    // Needed as soon as the configuration is loaded, which other threads do. When it cannot be, join() says why.
    if (options.epoch > 0) loadMessages().catch(() => {});
    return new HotRestart(options, shim, meeting, trust);
  }

  get baseId(): number {
    return this.#meeting.options.baseId;
  }

  /** Which process of its line this is, as far as it is known. */
  get facts(): EpochFacts {
    return this.#facts;
  }

  /**
   * Comes to the parent and takes its sockets. Rejects with BatonError when that fails, and when
   * `signal` says that nobody wants it any more.
   */
  async join(signal: AbortSignal): Promise<EpochFacts> {
    const { epoch, isParentOptional, isSupervised } = this.#options;
    const messages = await loadMessages();
    const [own, theirs] = this.#shim.socketPair();
    let isClosed = false;
    // With a copy here the end of the parent would not be noticed.
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

  /** Reads what it takes to hear a child: later the program's files may have been replaced, and descriptors may be short. */
  async load(): Promise<void> {
    try {
      await loadMessages();
    } catch (error) {
      logger.error(`no process can take over from this one yet: ${messageOf(error)}`);
    }
  }

  /** From now on `server` has its parent, and may get a child. */
  begin(server: RestartedServer): void {
    if (this.#joined !== undefined) {
      this.#child = new ChildEnd(this.#joined, {
        parentLost: (why, isGivenUp) => {
          this.#parentLost = this.#goOn(isGivenUp, why, server);
        },
        importStats: (piece) => {
          if (this.#options.takesParentStats) server.importStats(piece);
        },
        connectionWorkers: this.#options.handsOverConnections ? server.concurrency : 0,
        takeConnections: (channels) => server.takeConnections(channels),
        closeDescriptor: (fd) => this.#shim.closeDescriptor(fd),
        takeSockets: (sockets) => {
          this.#facts.parentSockets?.add(sockets);
          server.socketsCame();
          // The parent has closed its own, or is about to.
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
    server.onSockets(() => parent.socketsHaveCome());
    this.#meeting.onHello((bytes, fds) => void this.#hear(bytes, fds));
  }

  /** The parent is gone before this process is live, or has given it up. */
  async #goOn(isGivenUp: boolean, why: string, server: RestartedServer): Promise<void> {
    // Clients wait at the sockets that it has handed over: sooner than by this process nobody serves them. If it lives, it does.
    if (this.#options.isSupervised && !isGivenUp && (await this.#isParentGone())) {
      logger.warning(`the parent process has gone before this one was live (${why}); this one goes on`);
      return server.parentEnded();
    }
    logger.critical(`the parent process has gone before this one was live (${why})`);
    server.end(1);
  }

  /** Of what a process has, the kernel closes one after the other when it ends. */
  async #isParentGone(): Promise<boolean> {
    for (const endMs = performance.now() + PARENT_END_MS; this.#meeting.isParentThere; ) {
      if (performance.now() > endMs) return false;
      await pause(PARENT_POLL_MS);
    }
    return true;
  }

  /** Gives the parent copies of sockets that the server has bound beside its own. Resolves when they may listen. */
  async shareSockets(): Promise<void> {
    if (this.#child === undefined) return;
    await this.#parentLost;
    const further = [...this.#server!.furtherSockets()];
    const sockets = further.map(({ fds, id }) => ({ id, count: fds.length }));
    await this.#child.share(
      sockets,
      further.flatMap(({ fds }) => fds),
    );
    if (this.#stage === 'initializing') this.#server!.beginsToServe();
  }

  /**
   * The server accepts, and answers for admin: the parent stops to. Resolves when it has, takes too long, or is gone.
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

  /** Resolves when what the parent has counted is here, or it takes too long. */
  async refreshStats(): Promise<void> {
    if (this.#options.takesParentStats) await this.#child?.refreshStats();
  }

  /** Whether nobody is connected to the parent any more, or there is none. */
  async parentIsQuiet(): Promise<boolean> {
    return this.#child === undefined || this.#child.parentIsQuiet();
  }

  /** The server begins to end, and its parent with it. The names are free: no process can take over from this one any more. */
  ending(): void {
    this.#stage = 'ending';
    this.#meeting.close();
    this.#child?.close();
    this.#parentStatsImported();
  }

  /** The server has ended: its child is told what was counted last. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#stage = 'ending';
    await this.#parent?.finish();
    if (this.#child === undefined) this.#joined?.link.close();
    this.#meeting.close();
  }

  #factsOf({ firstStartedMs, generation, sockets }: Joined): EpochFacts {
    const { epoch, takesParentStats } = this.#options;
    return {
      number: epoch,
      generation: generation + 1,
      startedMs: this.#facts.startedMs,
      firstStartedMs,
      countedSinceMs: takesParentStats ? firstStartedMs : this.#facts.countedSinceMs,
      parentSockets: new InheritedSockets(this.#shim, sockets),
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
      offer: () => server.offer(),
      offerMore: () => server.offerMore(),
      addSockets: (id, fds) => server.addSockets(id, fds),
      childLost: () => server.childLost(),
      release: (ids) => server.release(ids),
      takeBack: () => server.takeBack(),
      replaced: (taken) => {
        // First: one that saw the end of this process would serve again, beside the child.
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

  /** Somebody who is believed has sent a datagram to this process as a parent. */
  async #hear(bytes: Uint8Array, [fd, ...others]: readonly number[]): Promise<void> {
    this.#drop(others);
    if (fd === undefined) return this.#meeting.dropped('it brings no link');
    let isTaken = false;
    try {
      const messages = await loadMessages();
      const hello = messages.decodeHello(bytes);
      // The child believes what comes on the link when it knows who has the other end.
      this.#prove();
      this.#parent!.greet(hello, (events) => {
        const link = new MessageLink(this.#shim, fd, parentCodec(messages), events);
        isTaken = true;
        return link;
      });
    } catch (error) {
      // What no link can be made of, such as a file, comes here as well.
      if (!isTaken) this.#drop([fd]);
      this.#meeting.dropped(messageOf(error));
    }
  }

  /** Retries while the child's socket is full, which other users can keep it. However many ask, one retry is pending. */
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

  #drop(fds: readonly number[]): void {
    for (const fd of fds) this.#shim.closeDescriptor(fd);
  }
}

/** For about as long as a child waits for its parent. */
const MAX_PROOFS = 2000;
const PROOF_RETRY_MS = 5;

function childCodec({ encodeToParent, decodeToChild }: typeof Messages) {
  return { encode: encodeToParent, decode: decodeToChild };
}

function parentCodec({ encodeToChild, decodeToParent }: typeof Messages) {
  return { encode: encodeToChild, decode: decodeToParent };
}
