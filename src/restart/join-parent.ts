// Joins a new process to its parent: hello, proof of the parent's identity, welcome with the sockets.

import { setTimeout as pause } from 'node:timers/promises';
import { BatonError, messageOf } from '../common/errors/errors.js';
import { PatientTimeout } from '../common/time/patient-timeout.js';
import type { Credentials } from '../io/shim.js';
import { getLogger } from '../log/logger.js';
import type { TicketKeys } from '../tls/shared-ticket-keys.js';
import type { Link, LinkEvents } from './link.js';
import type { ToChild, ToParent } from './messages.js';
import { peerText } from './peer-text.js';
import { MAX_OFFERED_TEXT, type ReceivedSockets, SocketReceiver, textOf } from './received-sockets.js';

/** The result: a parent that has welcomed this process. */
export interface Joined {
  readonly link: Link<ToParent>;
  readonly firstStartedMs: number;
  readonly generation: number;
  readonly sockets: readonly ReceivedSockets[];
  /** The parent's keys of session tickets; undefined if it has none. */
  readonly ticketKeys: TicketKeys | undefined;
  /** Directs the link's events, and messages received after the welcome, to `events`. */
  attach(events: LinkEvents<ToChild>): void;
}

/** The access to the parent. */
export interface ParentAccess {
  /** Tries to send hello once. Returns false when the parent's socket is full. Throws an Error with `code`. */
  sayHello(): boolean;
  /** Opens this process's end of the link. */
  openLink(events: LinkEvents<ToChild>): Link<ToParent>;
  /** Registers the listener for proofs, which is called with the sender's credentials. */
  onProof(listener: (credentials: Credentials | undefined) => void): void;
  /** Returns why the sender is not trusted; undefined when it is. */
  distrust(credentials: Credentials | undefined): string | undefined;
  closeDescriptor(fd: number): void;
}

export interface JoinOptions {
  /** Epoch of the parent. */
  readonly epoch: number;
  /** --skip-hot-restart-on-no-parent: without an answer, the process starts normally. */
  readonly isParentOptional: boolean;
  /** A supervisor has started this process while the parent lived: if that does not listen or has ended, it is dead. */
  readonly isSupervised: boolean;
  readonly signal: AbortSignal;
  readonly deadlines?: JoinDeadlines;
}

export interface JoinDeadlines {
  /** Between attempts to send hello. */
  readonly retryMs: number;
  /** How long a parent may take to answer a hello. */
  readonly welcomeMs: number;
}

const DEADLINES: JoinDeadlines = { retryMs: 1000, welcomeMs: 10_000 };
const MAX_TRIES = 10;
/** Tries while the file of a supervised parent's socket is missing: a parent that lives makes it again within a second. */
const MISSING_TRIES = 3;
/** Maximum wait for the proof of a parent whose welcome has arrived and which has died: the proof arrives on another socket. */
const PROOF_MS = 20;

const logger = getLogger('main');

/**
 * Joins the parent. Returns undefined when there is no parent and none is required. Rejects with a BatonError that contains the
 * reason.
 */
export async function joinParent(access: ParentAccess, options: JoinOptions): Promise<Joined | undefined> {
  const { retryMs, welcomeMs } = options.deadlines ?? DEADLINES;
  const answer = new Answer(access);
  const link = access.openLink(answer);
  try {
    if (!(await sayHello(access, options, retryMs))) {
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
  return { link, ...answer.takeWelcome(), attach: (events) => answer.attach(events) };
}

/** Sends hello, with retries. Returns false when no parent listens and none is required. */
async function sayHello(access: ParentAccess, options: JoinOptions, retryMs: number): Promise<boolean> {
  const { epoch, isSupervised, signal } = options;
  const isParentOptional = options.isParentOptional || isSupervised;
  for (let tries = 0; ; tries++) {
    let why: string;
    try {
      if (access.sayHello()) return true;
      why = 'its socket is full';
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code !== 'ECONNREFUSED' && code !== 'ENOENT') throw noParent(epoch, messageOf(error));
      const mayReturn = isSupervised && code === 'ENOENT' && tries < MISSING_TRIES;
      if (isParentOptional && !mayReturn) return false;
      why = 'no process listens at its socket';
      logger.warning('hot restart sendmsg() connection refused, retrying');
    }
    if (tries === MAX_TRIES) throw noParent(epoch, why);
    await pause(retryMs, undefined, { signal });
  }
}

function noParent(epoch: number, why: string): BatonError {
  return new BatonError('OPTION_INVALID', `the process of epoch ${epoch} cannot be reached: ${why}`, {
    where: '--restart-epoch',
    remedy: 'give the --base-id and --socket-path that it was started with, or --skip-hot-restart-on-no-parent',
  });
}

/** Collects the parent's answer. */
class Answer implements LinkEvents<ToChild> {
  readonly #access: ParentAccess;
  readonly #sockets: SocketReceiver;
  /** Messages after the welcome. */
  readonly #later: Parameters<LinkEvents<ToChild>['message']>[] = [];
  #laterText = 0;
  #firstStartedMs = 0;
  #generation = 0;
  #ticketKeys: TicketKeys | undefined;
  #isProven = false;
  #isProofLate = false;
  #proofTimer: PatientTimeout | undefined;
  #isComplete = false;
  #distrust = '';
  #refusal: string | undefined;
  #ended: Parameters<LinkEvents<ToChild>['ended']> | undefined;
  #events: LinkEvents<ToChild> | undefined;
  #update = () => {};
  /** A parent has answered, with any message. */
  hasCome = false;

  constructor(access: ParentAccess) {
    this.#access = access;
    this.#sockets = new SocketReceiver((fd) => access.closeDescriptor(fd));
    access.onProof((credentials) => {
      const distrust = access.distrust(credentials);
      if (distrust === undefined) this.#isProven = true;
      else this.#distrust = ` (${distrust})`;
      this.#update();
    });
  }

  /** The link has ended without a refusal. */
  get isParentGone(): boolean {
    return this.#ended?.[1] === true && this.#refusal === undefined;
  }

  takeWelcome(): Omit<Joined, 'link' | 'attach'> {
    return {
      firstStartedMs: this.#firstStartedMs,
      generation: this.#generation,
      sockets: this.#sockets.take(),
      ticketKeys: this.#ticketKeys,
    };
  }

  /** Resolves when the complete welcome of a proven parent has arrived. Rejects with a BatonError. */
  wait(deadlineMs: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const fail = (message: string) => settle(() => reject(new BatonError('OPTION_INVALID', message)));
      const deadline = new PatientTimeout(
        () => fail(`the parent process has not answered in ${deadlineMs / 1000} s${this.#distrust}`),
        deadlineMs,
      );
      const abort = () => fail('the start was aborted');
      const settle = (how: () => void) => {
        deadline.clear();
        this.#proofTimer?.clear();
        signal.removeEventListener('abort', abort);
        this.#update = () => {};
        how();
      };
      signal.addEventListener('abort', abort);
      this.#update = () => {
        if (this.#isProven && this.#refusal !== undefined) fail(this.#refusal);
        else if (this.#isProven && this.#isComplete) settle(resolve);
        // Its proof, sent before its end, may be unread.
        else if (this.#isComplete && this.#ended?.[1] === true && !this.#isProofLate) this.#awaitProof();
        else if (this.#ended !== undefined) fail(`the parent process was lost: ${this.#ended[0]}${this.#distrust}`);
      };
      if (signal.aborted) abort();
      else this.#update();
    });
  }

  #awaitProof(): void {
    this.#proofTimer ??= new PatientTimeout(() => {
      this.#isProofLate = true;
      this.#update();
    }, PROOF_MS);
  }

  attach(events: LinkEvents<ToChild>): void {
    this.#events = events;
    for (const [message, fds] of this.#later.splice(0)) events.message(message, fds);
    if (this.#ended !== undefined) events.ended(...this.#ended);
  }

  /** Closes all received descriptors. */
  release(): void {
    this.#sockets.release();
    for (const [, fds] of this.#later.splice(0)) this.#close(fds);
  }

  message(message: ToChild, fds: readonly number[]): void {
    if (this.#events !== undefined) return this.#events.message(message, fds);
    // Other messages are only sent on request.
    if (this.#isComplete && message.kind === 'welcome' && fds.length > 0) {
      this.#laterText += textOf(message.welcome.sockets);
      if (this.#laterText <= MAX_OFFERED_TEXT) return void this.#later.push([message, fds]);
    }
    // The parent has refused this process, with a reason.
    if (this.#isComplete && message.kind === 'refusal') return void this.#later.push([message, fds]);
    if (this.#isComplete) return this.#close(fds);
    this.hasCome = true;
    if (message.kind === 'welcome') this.#sockets.add(message.welcome.sockets, fds);
    else this.#close(fds);
    if (message.kind === 'welcome') {
      this.#firstStartedMs = message.welcome.firstStartedMs;
      this.#generation = message.welcome.generation;
      this.#ticketKeys ??= message.welcome.ticketKeys;
      this.#isComplete = message.welcome.isLast;
    } else if (message.kind === 'refusal') {
      this.#refusal = peerText(message.reason);
    }
    this.#update();
  }

  ended(why: string, isGone: boolean): void {
    if (this.#events !== undefined) return this.#events.ended(why, isGone);
    this.#ended = [why, isGone];
    this.#update();
  }

  #close(fds: readonly number[]): void {
    for (const fd of fds) this.#access.closeDescriptor(fd);
  }
}
