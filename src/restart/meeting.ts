// The two sockets at which the processes of a hot restart meet, bound for as long as the process lives.

import { randomBytes, randomInt } from 'node:crypto';
import { chmodSync, lstatSync, unlinkSync } from 'node:fs';
import { constants } from 'node:os';
import { BatonError, messageOf } from '../common/errors.js';
import { AddressKind, encodeAddress } from '../io/address.js';
import type { Credentials, MessageSocketEvents, NativeMessageSocket, NativeShim } from '../io/shim.js';
import { epochId, meetingNames, scaledBaseId } from './names.js';

export interface MeetingOptions {
  readonly socketPath: string;
  /** Permissions of sockets that are files. */
  readonly socketMode: number;
  readonly baseId: number;
  readonly epoch: number;
}

/** A datagram with descriptors, which belong to whoever gets it. */
export type OnDatagram = (bytes: Uint8Array, fds: readonly number[], credentials: Credentials | undefined) => void;

/** The name belongs to another process. */
export class NameTakenError extends BatonError {}

const DYNAMIC_IDS = 2 ** 28;
const MOST_TRIES = 1000;

export class Meeting {
  readonly options: MeetingOptions;
  readonly #asParent: BoundSocket;
  readonly #asChild: BoundSocket;

  /** Binds both names. Throws BatonError: NameTakenError when another process has one of them. */
  constructor(shim: NativeShim, options: MeetingOptions) {
    const { socketPath, baseId, epoch, socketMode } = options;
    const names = meetingNames(socketPath, baseId, epoch);
    this.options = options;
    this.#asChild = bind(shim, names.child, options, socketMode);
    try {
      this.#asParent = bind(shim, names.parent, options, socketMode);
    } catch (error) {
      this.#asChild.close();
      throw error;
    }
  }

  /** Binds names of a base ID that nobody uses. Throws BatonError when none is found. */
  static withUnusedBaseId(shim: NativeShim, options: Omit<MeetingOptions, 'baseId'>): Meeting {
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      try {
        return new Meeting(shim, { ...options, baseId: randomInt(DYNAMIC_IDS) });
      } catch (error) {
        if (!(error instanceof NameTakenError)) throw error;
      }
    }
    throw new BatonError('OPTION_INVALID', 'unable to select a dynamic base id', { where: '--use-dynamic-base-id' });
  }

  /** What children say from now on; datagrams that came before are kept for it. */
  onHello(listener: OnDatagram): void {
    this.#asParent.listen(listener);
  }

  /** What the parent says from now on. */
  onProof(listener: OnDatagram): void {
    this.#asChild.listen(listener);
  }

  /**
   * Says hello to the process of the epoch before. False when it takes no datagram now. Throws an Error with `code`:
   * ECONNREFUSED and ENOENT say that there is none.
   */
  sayHello(bytes: Uint8Array, fd: number): boolean {
    const { socketPath, baseId, epoch } = this.options;
    const { parent } = meetingNames(socketPath, baseId, epoch - 1);
    return this.#asChild.socket.sendTo(unixAddress(parent), bytes, [fd]);
  }

  /** Proves to the process of the next epoch who this one is. Returns and throws as sayHello(). */
  prove(): boolean {
    const { socketPath, baseId, epoch } = this.options;
    const { child } = meetingNames(socketPath, baseId, epoch + 1);
    return this.#asParent.socket.sendTo(unixAddress(child), PROOF, []);
  }

  /** Frees both names. */
  close(): void {
    this.#asParent.close();
    this.#asChild.close();
  }
}

/** Its sender counts, not its content. */
const PROOF = new Uint8Array([1]);

/** A socket that keeps what comes until somebody listens. */
class BoundSocket implements MessageSocketEvents {
  readonly socket: NativeMessageSocket;
  readonly #shim: NativeShim;
  /** The file to remove at the end, and its inode; undefined for an abstract name. */
  readonly #file: { readonly path: string; readonly inode: number } | undefined;
  #waiting: Parameters<OnDatagram>[] = [];
  #listener: OnDatagram | undefined;

  constructor(shim: NativeShim, fd: number, path: string | undefined) {
    this.#shim = shim;
    this.#file = path === undefined ? undefined : { path, inode: lstatSync(path).ino };
    this.socket = shim.watchMessages(fd, this);
  }

  listen(listener: OnDatagram): void {
    this.#listener = listener;
    for (const datagram of this.#waiting.splice(0)) listener(...datagram);
  }

  close(): void {
    // While the socket is bound, nobody else takes a file of its path away.
    if (this.#file !== undefined) removeFile(this.#file);
    this.socket.close();
    for (const [, fds] of this.#waiting.splice(0)) for (const fd of fds) this.#shim.closeDescriptor(fd);
  }

  onMessage(bytes: Uint8Array, fds: readonly number[], credentials: Credentials | undefined): void {
    // What somebody sends to learn whether this socket is alive.
    if (bytes.length === 0) return;
    if (this.#listener !== undefined) this.#listener(bytes, fds, credentials);
    else this.#waiting.push([bytes, fds, credentials]);
  }

  onWritable(): void {}
  onEnd(): void {}
}

function bind(shim: NativeShim, name: string, options: MeetingOptions, mode: number): BoundSocket {
  const isFile = !name.startsWith('@');
  // Nobody else may write to it, not even before its permissions are set.
  const umask = isFile ? process.umask(0o777) : 0;
  let fd: number | undefined;
  try {
    fd = openSocket(shim, name, isFile);
    if (isFile) chmodSync(name, mode);
    return new BoundSocket(shim, fd, isFile ? name : undefined);
  } catch (error) {
    if (fd !== undefined) shim.closeDescriptor(fd);
    throw bindError(error, name, options);
  } finally {
    if (isFile) process.umask(umask);
  }
}

function openSocket(shim: NativeShim, name: string, isFile: boolean): number {
  const address = unixAddress(name);
  try {
    return shim.openMeetingSocket(address);
  } catch (error) {
    if (!isFile || codeOf(error) !== 'EADDRINUSE' || isAlive(shim, address)) throw error;
    // A process that was killed has left its file behind.
    if (!lstatSync(name).isSocket()) throw error;
    unlinkSync(name);
    return shim.openMeetingSocket(address);
  }
}

/** Whether a process listens at a socket file. */
function isAlive(shim: NativeShim, address: Uint8Array): boolean {
  const own = unixAddress(`@baton-probe-${process.pid}-${randomBytes(8).toString('hex')}`);
  const probe = shim.watchMessages(shim.openMeetingSocket(own), { onMessage() {}, onWritable() {}, onEnd() {} });
  try {
    probe.sendTo(address, new Uint8Array(0), []);
    return true;
  } catch (error) {
    return codeOf(error) !== 'ECONNREFUSED';
  } finally {
    probe.close();
  }
}

function bindError(error: unknown, name: string, { baseId, epoch }: MeetingOptions): BatonError {
  const code = codeOf(error);
  const errno = (constants.errno as Readonly<Record<string, number>>)[code ?? ''];
  if (errno === undefined) return new BatonError('OPTION_INVALID', messageOf(error), { where: '--socket-path' });
  const text = `unable to bind domain socket with base_id=${scaledBaseId(baseId)}, id=${epochId(epoch)}, errno=${errno}`;
  if (code === 'EADDRINUSE') return new NameTakenError('OPTION_INVALID', `${text} (see --base-id option)`);
  return new BatonError('OPTION_INVALID', `${text} (see --socket-path option: cannot create '${name}')`);
}

function removeFile({ path, inode }: { readonly path: string; readonly inode: number }): void {
  try {
    if (lstatSync(path).ino === inode) unlinkSync(path);
  } catch {
    // Somebody has removed it already.
  }
}

function unixAddress(path: string): Uint8Array {
  return encodeAddress({ kind: AddressKind.Unix, ip: '', port: 0, path });
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code;
}
