// The two sockets at which the processes of a hot restart meet, bound as long as the process lives.

import { randomInt } from 'node:crypto';
import { lstatSync, unlinkSync } from 'node:fs';
import { constants } from 'node:os';
import { errorName } from '../common/errors/errno.js';
import { BatonError, messageOf } from '../common/errors/errors.js';
import { AddressKind, encodeAddress } from '../io/addresses/address.js';
import { isSocketBound, removeAbandonedSocket, removeSocketFile } from '../io/addresses/socket-file.js';
import type { Credentials, MessageSocketEvents, NativeMessageSocket, NativeShim } from '../io/shim.js';
import { getLogger } from '../log/logger.js';
import { OccasionalLog } from '../log/occasional-log.js';
import { epochId, meetingNames, otherMeetingNames, scaledBaseId } from './names.js';

export interface MeetingOptions {
  readonly socketPath: string;
  /** Permissions of sockets that are files. */
  readonly socketMode: number;
  readonly baseId: number;
  readonly epoch: number;
}

/** Called with a child's hello and descriptors. The receiver owns the descriptors. */
export type OnHello = (bytes: Uint8Array, fds: readonly number[]) => void;

/** Returns why the sender of a datagram is not trusted; undefined when it is. */
export type Distrust = (credentials: Credentials | undefined) => string | undefined;

/** Another process has the name. */
class NameTakenError extends BatonError {}

const DYNAMIC_IDS = 2 ** 28;
const MAX_TRIES = 1000;
/** Hellos kept while this process initializes. */
const MAX_WAITING = 4;
/** Retry interval for binding a lost name. */
const REBIND_MS = 1000;
/** How often the files of the sockets are looked for. A child waits longer for a missing one: see join-parent.ts. */
const FILE_CHECK_MS = 1000;

const logger = getLogger('main');

export class Meeting {
  readonly options: MeetingOptions;
  readonly #shim: NativeShim;
  readonly #distrust: Distrust;
  readonly #asParent: BoundSocket;
  readonly #asChild: BoundSocket;
  #waiting: Parameters<OnHello>[] = [];
  #onHello: OnHello | undefined;
  #onProof: ((credentials: Credentials | undefined) => void) | undefined;
  readonly #dropped = new OccasionalLog((why) =>
    logger.warning(`a message to the hot restart socket is dropped: ${why}`),
  );
  readonly #tooFewDescriptors = new OccasionalLog((text) => logger.error(text));
  /** Looks for the files of the sockets; undefined for abstract names. */
  readonly #fileCheck: NodeJS.Timeout | undefined;
  #isClosed = false;

  /** Binds both names. Throws a BatonError: NameTakenError when another process has one of them. */
  constructor(shim: NativeShim, options: MeetingOptions, distrust: Distrust) {
    const { socketPath, baseId, epoch } = options;
    const names = meetingNames(socketPath, baseId, epoch);
    this.options = options;
    this.#shim = shim;
    this.#distrust = distrust;
    const lost = (errno: number, credentials: Credentials | undefined) => this.#lost(errno, credentials);
    this.#asChild = new BoundSocket(shim, names.child, options, {
      message: (_bytes, fds, credentials) => {
        // The parent sends no descriptors here, and a process without a parent expects nothing.
        this.#close(fds);
        this.#onProof?.(credentials);
      },
      lost,
    });
    try {
      this.#asParent = new BoundSocket(shim, names.parent, options, {
        message: (bytes, fds, credentials) => this.#receiveHello(bytes, fds, credentials),
        lost,
      });
    } catch (error) {
      this.#asChild.close();
      throw error;
    }
    this.#removeAbandoned();
    if (socketPath.startsWith('@')) return;
    this.#fileCheck = setInterval(() => {
      this.#asParent.ensure();
      this.#asChild.ensure();
    }, FILE_CHECK_MS).unref();
  }

  /** Binds names of an unused base ID. Throws a BatonError when none is found. */
  static withUnusedBaseId(shim: NativeShim, options: Omit<MeetingOptions, 'baseId'>, distrust: Distrust): Meeting {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      try {
        return new Meeting(shim, { ...options, baseId: randomInt(DYNAMIC_IDS) }, distrust);
      } catch (error) {
        if (!(error instanceof NameTakenError)) throw error;
      }
    }
    throw new BatonError('OPTION_INVALID', 'unable to select a dynamic base id', { where: '--use-dynamic-base-id' });
  }

  /** Registers the listener for hellos of trusted children, and passes it those kept so far. */
  onHello(listener: OnHello): void {
    this.#onHello = listener;
    for (const hello of this.#waiting.splice(0)) listener(...hello);
  }

  /** Registers the listener for processes that claim to be the parent, trusted or not. */
  onProof(listener: (credentials: Credentials | undefined) => void): void {
    this.#onProof = listener;
  }

  /** Logs, at a limited rate, why a message is dropped. */
  dropped(why: string): void {
    this.#dropped.log(why);
  }

  /**
   * Sends hello to the process of the previous epoch. Returns false when its socket is full. Throws an Error with `code`:
   * ECONNREFUSED and ENOENT mean that there is none.
   */
  sayHello(bytes: Uint8Array, fd: number): boolean {
    const { socketPath, baseId, epoch } = this.options;
    const { parent } = meetingNames(socketPath, baseId, epoch - 1);
    return this.#asChild.sendTo(unixAddress(parent), bytes, [fd]);
  }

  /** Sends the process of the next epoch a datagram that proves this one's identity. Returns and throws as sayHello(). */
  prove(): boolean {
    const { socketPath, baseId, epoch } = this.options;
    const { child } = meetingNames(socketPath, baseId, epoch + 1);
    return this.#asParent.sendTo(unixAddress(child), PROOF, []);
  }

  /** Returns whether a process listens at the name of the previous epoch. */
  get isParentThere(): boolean {
    const { socketPath, baseId, epoch } = this.options;
    try {
      this.#asChild.sendTo(unixAddress(meetingNames(socketPath, baseId, epoch - 1).parent), new Uint8Array(0), []);
      return true;
    } catch (error) {
      return codeOf(error) !== 'ECONNREFUSED' && codeOf(error) !== 'ENOENT';
    }
  }

  /** Frees both names. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearInterval(this.#fileCheck);
    this.#asParent.close();
    this.#asChild.close();
    this.#removeAbandoned();
    for (const [, fds] of this.#waiting.splice(0)) this.#close(fds);
  }

  /** Removes the files that killed epochs have left and that no later epoch may remove. */
  #removeAbandoned(): void {
    const { socketPath, baseId, epoch } = this.options;
    if (socketPath.startsWith('@')) return;
    for (const { child, parent } of otherMeetingNames(socketPath, baseId, epoch)) {
      removeAbandonedSocket(this.#shim, child);
      removeAbandonedSocket(this.#shim, parent);
    }
  }

  /** Handles a hello. Nothing of an untrusted sender is kept, since it could send without end. */
  #receiveHello(bytes: Uint8Array, fds: readonly number[], credentials: Credentials | undefined): void {
    // Empty datagrams test whether this socket is alive.
    if (bytes.length === 0) return this.#close(fds);
    const reason = this.#distrust(credentials);
    if (reason === undefined && this.#onHello !== undefined) return this.#onHello(bytes, fds);
    if (reason === undefined && this.#waiting.length < MAX_WAITING) return void this.#waiting.push([bytes, fds]);
    this.#close(fds);
    this.dropped(reason ?? 'too many arrived while this process was initializing');
  }

  #lost(errno: number, credentials: Credentials | undefined): void {
    const reason = this.#distrust(credentials);
    if (reason !== undefined || errno !== constants.errno.EMFILE) {
      return this.dropped(reason ?? 'it is larger than any valid message');
    }
    this.#tooFewDescriptors.log(
      `process ${credentials?.pid} cannot take over: this one may open no more descriptors for its sockets (EMFILE); ` +
        'raise the limit (ulimit -n), or try again when fewer connections are open',
    );
  }

  #close(fds: readonly number[]): void {
    for (const fd of fds) this.#shim.closeDescriptor(fd);
  }
}

/** The content is irrelevant: the sender's credentials are the proof. */
const PROOF = new Uint8Array([1]);

/** The receiver of a socket's messages. */
interface Receiver {
  message(bytes: Uint8Array, fds: readonly number[], credentials: Credentials | undefined): void;
  lost(errno: number, credentials: Credentials | undefined): void;
}

/** A socket name that stays bound until it is closed. */
class BoundSocket implements MessageSocketEvents {
  readonly #shim: NativeShim;
  readonly #name: string;
  readonly #options: MeetingOptions;
  readonly #receiver: Receiver;
  #socket: NativeMessageSocket;
  /** Inode of its file, which is removed at the end; undefined for an abstract name. */
  #inode: number | undefined;
  /** The socket has ended, and none replaces it yet. */
  #hasEnded = false;
  #retryTimer: NodeJS.Timeout | undefined;
  /** The last logged reason why the name cannot be bound again. */
  #lastFailure = '';

  /** Throws BatonError. */
  constructor(shim: NativeShim, name: string, options: MeetingOptions, receiver: Receiver) {
    this.#shim = shim;
    this.#name = name;
    this.#options = options;
    this.#receiver = receiver;
    this.#socket = this.#bind();
  }

  /** As NativeMessageSocket.sendTo(). */
  sendTo(address: Uint8Array, bytes: Uint8Array, fds: readonly number[]): boolean {
    return this.#socket.sendTo(address, bytes, fds);
  }

  /** Binds the name again if its file is missing: programs that clean up directories may remove it. */
  ensure(): void {
    if (this.#inode === undefined || this.#retryTimer !== undefined || inodeOf(this.#name) === this.#inode) return;
    logger.warning(`the file of the hot restart socket '${this.#name}' was removed; binding it again`);
    this.#rebind();
  }

  close(): void {
    clearTimeout(this.#retryTimer);
    // While the socket is bound, no other process removes a file at its path.
    if (this.#inode !== undefined) removeSocketFile(this.#name, this.#inode);
    this.#socket.close();
  }

  onMessage(bytes: Uint8Array, fds: readonly number[], credentials: Credentials | undefined): void {
    this.#receiver.message(bytes, fds, credentials);
  }

  onLost(errno: number, credentials: Credentials | undefined): void {
    this.#receiver.lost(errno, credentials);
  }

  onWritable(): void {}

  onEnd(errno: number): void {
    logger.error(`the hot restart socket '${this.#name}' has ended (${errorName(errno)}); binding it again`);
    this.#hasEnded = true;
    this.#rebind();
  }

  #rebind(): void {
    const former = this.#socket;
    this.#retryTimer = undefined;
    try {
      this.#socket = this.#bind();
    } catch (error) {
      const reason = messageOf(error);
      if (reason !== this.#lastFailure) logger.error(`no process can take over from this one: ${reason}; retrying`);
      this.#lastFailure = reason;
      this.#retryTimer = setTimeout(() => this.#rebind(), REBIND_MS);
      return;
    }
    if (!this.#hasEnded) former.close();
    if (this.#lastFailure !== '') logger.info(`the hot restart socket '${this.#name}' is bound again`);
    this.#hasEnded = false;
    this.#lastFailure = '';
  }

  #bind(): NativeMessageSocket {
    const name = this.#name;
    const isFile = !name.startsWith('@');
    let fd: number | undefined;
    try {
      fd = openSocket(this.#shim, name, this.#options.socketMode);
      this.#inode = isFile ? lstatSync(name).ino : undefined;
      return this.#shim.watchMessages(fd, this);
    } catch (error) {
      if (fd !== undefined) this.#shim.closeDescriptor(fd);
      throw bindError(error, name, this.#options);
    }
  }
}

/** Returns the inode of a file, or undefined if there is none. */
function inodeOf(path: string): number | undefined {
  try {
    return lstatSync(path).ino;
  } catch {
    return undefined;
  }
}

function openSocket(shim: NativeShim, name: string, mode: number): number {
  const address = unixAddress(name);
  try {
    return shim.openMeetingSocket(address, mode);
  } catch (error) {
    if (name.startsWith('@') || codeOf(error) !== 'EADDRINUSE' || isSocketBound(shim, address)) throw error;
    // A killed process has left its file.
    if (!lstatSync(name).isSocket()) throw error;
    unlinkSync(name);
    return shim.openMeetingSocket(address, mode);
  }
}

function bindError(error: unknown, name: string, { baseId, epoch }: MeetingOptions): BatonError {
  const code = codeOf(error);
  const errno = (constants.errno as Readonly<Record<string, number>>)[code ?? ''];
  if (errno === undefined) return new BatonError('OPTION_INVALID', messageOf(error), { where: '--socket-path' });
  const text = `unable to bind domain socket with base_id=${scaledBaseId(baseId)}, id=${epochId(epoch)}, errno=${errno}`;
  if (code === 'EADDRINUSE') {
    const hint = isOtherFile(name) ? `--socket-path option: '${name}' is not a socket` : '--base-id option';
    return new NameTakenError('OPTION_INVALID', `${text} (see ${hint})`);
  }
  return new BatonError(
    'OPTION_INVALID',
    `${text} (see --socket-path option: cannot create '${name}': ${messageOf(error)})`,
  );
}

/** Returns whether the name is that of a directory, a pipe or another file that is not a socket. */
function isOtherFile(name: string): boolean {
  if (name.startsWith('@')) return false;
  try {
    return !lstatSync(name).isSocket();
  } catch {
    return false;
  }
}

function unixAddress(path: string): Uint8Array {
  return encodeAddress({ kind: AddressKind.Unix, ip: '', port: 0, path });
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code;
}
