// How a new process comes to its parent: hello, proof of who the parent is, welcome with the sockets.

import { setTimeout as pause } from 'node:timers/promises';
import { BatonError, messageOf } from '../common/errors/errors.js';
import { PatientTimeout } from '../common/time/patient-timeout.js';
import type { Credentials } from '../io/shim.js';
import { getLogger } from '../log/logger.js';
import type { Link, LinkEvents } from './link.js';
import type { ToChild, ToParent } from './messages.js';
import { peerText } from './peer-text.js';
import { MAX_OFFERED_TEXT, type ReceivedSockets, SocketReceiver, textOf } from './received-sockets.js';

/** A parent that has welcomed this process. */
export interface Joined {
  readonly link: Link<ToParent>;
  readonly firstStartedMs: number;
  readonly generation: number;
  readonly sockets: readonly ReceivedSockets[];
  /** From now on the link's events come here, and what has come behind the welcome. */
  follow(events: LinkEvents<ToChild>): void;
}

/** The ways to the parent. */
export interface ParentDoor {
  /** One attempt to say hello; false when the parent takes no datagram now, throws an Error with `code`. */
  sayHello(): boolean;
  /** Opens this process's end of the link. */
  openLink(events: LinkEvents<ToChild>): Link<ToParent>;
  /** Tells who claims to be the parent. */
  onProof(listener: (credentials: Credentials | undefined) => void): void;
  /** Why not to believe him. */
  distrust(credentials: Credentials | undefined): string | undefined;
  closeDescriptor(fd: number): void;
}

export interface JoinOptions {
  /** Of the parent. */
  readonly epoch: number;
  /** --skip-hot-restart-on-no-parent: nobody to answer means to start normally. */
  readonly isParentOptional: boolean;
  /** A supervisor has started this process while its parent lived: when that does not listen, or is gone, it is dead. */
  readonly isSupervised: boolean;
  readonly signal: AbortSignal;
  readonly deadlines?: JoinDeadlines;
}

export interface JoinDeadlines {
  /** Between attempts to say hello. */
  readonly retryMs: number;
  /** How long a parent that has heard hello may take for its answer. */
  readonly welcomeMs: number;
}

const DEADLINES: JoinDeadlines = { retryMs: 1000, welcomeMs: 10_000 };
const MOST_TRIES = 10;
/** For the proof of a parent whose welcome is here, and which is dead: it has come by another socket. */
const PROOF_MS = 20;

const logger = getLogger('main');

/** Undefined when there is no parent and none is needed. Rejects with a BatonError that says why it does not work. */
export async function joinParent(door: ParentDoor, options: JoinOptions): Promise<Joined | undefined> {
  const { retryMs, welcomeMs } = options.deadlines ?? DEADLINES;
  const answer = new Answer(door);
  const link = door.openLink(answer);
  try {
    if (!(await sayHello(door, options, retryMs))) {
      logger.warning('hot restart sendmsg() connection refused, falling back to regular restart');
      link.close();
      return undefined;
    }
    await answer.wait(welcomeMs, options.signal);
    link.send({ kind: 'alive' });
  } catch (error) {
    link.close();
    answer.release();
    options.signal.throwIfAborted();
    const mayStart = answer.isParentGone ? options.isSupervised : false;
    if (!mayStart && (!options.isParentOptional || answer.hasCome)) throw error;
    logger.warning(`${messageOf(error)}; falling back to regular restart`);
    return undefined;
  }
  return { link, ...answer.takeWelcome(), follow: (events) => answer.follow(events) };
}

/** False when nobody is there and nobody needs to be. */
async function sayHello(door: ParentDoor, options: JoinOptions, retryMs: number): Promise<boolean> {
  const { epoch, isSupervised, signal } = options;
  const isParentOptional = options.isParentOptional || isSupervised;
  for (let tries = 0; ; tries++) {
    let why: string;
    try {
      if (door.sayHello()) return true;
      why = 'its socket is full';
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code !== 'ECONNREFUSED' && code !== 'ENOENT') throw noParent(epoch, messageOf(error));
      if (isParentOptional) return false;
      why = 'nobody listens at its socket';
      logger.warning('hot restart sendmsg() connection refused, retrying');
    }
    if (tries === MOST_TRIES) throw noParent(epoch, why);
    await pause(retryMs, undefined, { signal });
  }
}

function noParent(epoch: number, why: string): BatonError {
  return new BatonError('OPTION_INVALID', `the process of epoch ${epoch} cannot be reached: ${why}`, {
    where: '--restart-epoch',
    remedy: 'give the --base-id and --socket-path that it was started with, or --skip-hot-restart-on-no-parent',
  });
}

/** What has come from the parent so far. */
class Answer implements LinkEvents<ToChild> {
  readonly #door: ParentDoor;
  readonly #sockets: SocketReceiver;
  /** What has come behind the welcome. */
  readonly #later: Parameters<LinkEvents<ToChild>['message']>[] = [];
  #laterText = 0;
  #firstStartedMs = 0;
  #generation = 0;
  #isProven = false;
  #isProofLate = false;
  #proofTimer: PatientTimeout | undefined;
  #isComplete = false;
  #distrust = '';
  #refusal: string | undefined;
  #ended: Parameters<LinkEvents<ToChild>['ended']> | undefined;
  #events: LinkEvents<ToChild> | undefined;
  #changed = () => {};
  /** A parent has answered, whatever it was. */
  hasCome = false;

  constructor(door: ParentDoor) {
    this.#door = door;
    this.#sockets = new SocketReceiver((fd) => door.closeDescriptor(fd));
    door.onProof((credentials) => {
      const distrust = door.distrust(credentials);
      if (distrust === undefined) this.#isProven = true;
      else this.#distrust = ` (${distrust})`;
      this.#changed();
    });
  }

  /** The link has ended. */
  get isParentGone(): boolean {
    return this.#ended?.[1] === true && this.#refusal === undefined;
  }

  takeWelcome(): Pick<Joined, 'firstStartedMs' | 'generation' | 'sockets'> {
    return { firstStartedMs: this.#firstStartedMs, generation: this.#generation, sockets: this.#sockets.take() };
  }

  /** Resolves when the whole welcome of a proven parent is here. Rejects with a BatonError. */
  wait(deadlineMs: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const fail = (message: string) => settle(() => reject(new BatonError('OPTION_INVALID', message)));
      const deadline = new PatientTimeout(
        () => fail(`the parent process has not answered in ${deadlineMs / 1000} s${this.#distrust}`),
        deadlineMs,
      );
      const abort = () => fail('told to end');
      const settle = (how: () => void) => {
        deadline.clear();
        this.#proofTimer?.clear();
        signal.removeEventListener('abort', abort);
        this.#changed = () => {};
        how();
      };
      signal.addEventListener('abort', abort);
      this.#changed = () => {
        if (this.#isProven && this.#refusal !== undefined) fail(this.#refusal);
        else if (this.#isProven && this.#isComplete) settle(resolve);
        // What it has sent before its end may not have been looked at.
        else if (this.#isComplete && this.#ended?.[1] === true && !this.#isProofLate) this.#awaitProof();
        else if (this.#ended !== undefined) fail(`the parent process has gone: ${this.#ended[0]}${this.#distrust}`);
      };
      if (signal.aborted) abort();
      else this.#changed();
    });
  }

  #awaitProof(): void {
    this.#proofTimer ??= new PatientTimeout(() => {
      this.#isProofLate = true;
      this.#changed();
    }, PROOF_MS);
  }

  follow(events: LinkEvents<ToChild>): void {
    this.#events = events;
    for (const [message, fds] of this.#later.splice(0)) events.message(message, fds);
    if (this.#ended !== undefined) events.ended(...this.#ended);
  }

  /** Gives back what has come. */
  release(): void {
    this.#sockets.release();
    for (const [, fds] of this.#later.splice(0)) this.#close(fds);
  }

  message(message: ToChild, fds: readonly number[]): void {
    if (this.#events !== undefined) return this.#events.message(message, fds);
    // Nothing else comes before this process has asked for it.
    if (this.#isComplete && message.kind === 'welcome' && fds.length > 0) {
      this.#laterText += textOf(message.welcome.sockets);
      if (this.#laterText <= MAX_OFFERED_TEXT) return void this.#later.push([message, fds]);
    }
    // It has been given up, and says why.
    if (this.#isComplete && message.kind === 'refusal') return void this.#later.push([message, fds]);
    if (this.#isComplete) return this.#close(fds);
    this.hasCome = true;
    if (message.kind === 'welcome') this.#sockets.add(message.welcome.sockets, fds);
    else this.#close(fds);
    if (message.kind === 'welcome') {
      this.#firstStartedMs = message.welcome.firstStartedMs;
      this.#generation = message.welcome.generation;
      this.#isComplete = message.welcome.isLast;
    } else if (message.kind === 'refusal') {
      this.#refusal = peerText(message.reason);
    }
    this.#changed();
  }

  ended(why: string, isGone: boolean): void {
    if (this.#events !== undefined) return this.#events.ended(why, isGone);
    this.#ended = [why, isGone];
    this.#changed();
  }

  #close(fds: readonly number[]): void {
    for (const fd of fds) this.#door.closeDescriptor(fd);
  }
}
