// The datagram socket on which children notify that they are live (sd_notify(3)), and from which the service manager is notified.

import { lstatSync, mkdirSync, mkdtempSync, readdirSync, rmdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { errorName } from '../common/errors/errno.js';
import { messageOf } from '../common/errors/errors.js';
import { AddressKind, encodeAddress } from '../io/addresses/address.js';
import { removeAbandonedSocket } from '../io/addresses/socket-file.js';
import type { NativeMessageSocket, NativeShim } from '../io/shim.js';
import { OccasionalLog } from '../log/occasional-log.js';
import { logger } from './log.js';

/** Called with a message: its assignments by name, and the sender's pid from the kernel. */
export type NotifyListener = (pid: number, assignments: ReadonlyMap<string, string>) => void;

/** Prefix of the directories. */
const PREFIX = 'baton-restarter-';
const SOCKET = 'notify';

/** Retry interval for reopening a lost socket. */
const REOPEN_MS = 1000;

/**
 * Both directions use one socket of the shim: it provides the sender of each message (SO_PASSCRED), and it reaches abstract
 * names, which the unix-dgram package truncates at their first byte.
 */
export class NotifySocket {
  /** NOTIFY_SOCKET of the children: a path in a directory that only this user may enter. */
  readonly path: string;
  readonly #shim: NativeShim;
  readonly #listener: NotifyListener;
  readonly #lost = new OccasionalLog((text) => logger.warning(text));
  #socket: NativeMessageSocket;
  /** Inode of its file. */
  #inode = 0;

  /** Creates a directory in `parent`, which is removed when this process exits. Throws an Error with `code`. */
  constructor(shim: NativeShim, parent: string, listener: NotifyListener) {
    removeAbandoned(shim, parent);
    const directory = mkdtempSync(join(parent, PREFIX));
    process.once('exit', () => rmSync(directory, { recursive: true, force: true }));
    this.path = join(directory, SOCKET);
    this.#shim = shim;
    this.#listener = listener;
    this.#socket = this.#open();
  }

  /** Sends a message to another process's socket. Returns false when that is full. Throws an Error with `code`. */
  send(address: Uint8Array, text: string): boolean {
    return this.#socket.sendTo(address, Buffer.from(text), []);
  }

  /** Recreates the socket if its file is missing: programs that clean up temporary directories may remove it. */
  ensure(): void {
    if (lstatSync(this.path, { throwIfNoEntry: false })?.ino === this.#inode) return;
    logger.warning(`${this.path} was removed: making it again`);
    const old = this.#socket;
    try {
      makeOwnDirectory(dirname(this.path));
      rmSync(this.path, { force: true });
      this.#socket = this.#open();
      old.close();
    } catch (error) {
      logger.error(`children cannot notify that they are live: ${messageOf(error)}`);
    }
  }

  #open(): NativeMessageSocket {
    const shim = this.#shim;
    const address = encodeAddress({ kind: AddressKind.Unix, ip: '', port: 0, path: this.path });
    const fd = shim.openMeetingSocket(address);
    this.#inode = lstatSync(this.path, { throwIfNoEntry: false })?.ino ?? 0;
    return shim.watchMessages(fd, {
      onMessage: (bytes, fds, credentials) => {
        // A sender with BARRIER=1 waits until its descriptor is closed.
        for (const fd of fds) shim.closeDescriptor(fd);
        if (credentials !== undefined) this.#listener(credentials.pid, parseAssignments(bytes));
      },
      onLost: (errno, credentials) => {
        this.#lost.log(`a message of process ${credentials?.pid} to the notify socket is lost: ${errorName(errno)}`);
      },
      onWritable() {},
      onEnd: (errno) => {
        logger.error(`the notify socket has ended: ${errorName(errno)}; reopening it`);
        this.#reopen();
      },
    });
  }

  #reopen(): void {
    try {
      rmSync(this.path, { force: true });
      this.#socket = this.#open();
    } catch (error) {
      logger.error(`children cannot notify that they are live: ${messageOf(error)}; retrying`);
      setTimeout(() => this.#reopen(), REOPEN_MS);
    }
  }
}

/** Removes directories that killed wrappers of this user have left: those with a socket on which no process listens. */
function removeAbandoned(shim: NativeShim, parent: string): void {
  try {
    for (const name of readdirSync(parent)) {
      const directory = join(parent, name);
      if (!name.startsWith(PREFIX) || !isOwnDirectory(directory)) continue;
      const path = join(directory, SOCKET);
      const isThere = lstatSync(path, { throwIfNoEntry: false }) !== undefined;
      removeAbandonedSocket(shim, path);
      // A directory without a socket may be new.
      if (isThere && lstatSync(path, { throwIfNoEntry: false }) === undefined) rmdirSync(directory);
    }
  } catch (error) {
    logger.warning(`directories of other wrappers cannot be removed: ${messageOf(error)}`);
  }
}

/** Returns the parent of the socket's directory: the service's runtime directory, if its manager has created one. */
export function notifyDirectory(env: NodeJS.ProcessEnv): string {
  // Several directories are separated by colons.
  return env['RUNTIME_DIRECTORY']?.split(':')[0] || tmpdir();
}

/** Creates the directory. Throws an Error when another user owns an existing one. */
function makeOwnDirectory(path: string): void {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return void mkdirSync(path, { mode: 0o700 });
  if (!isOwnDirectory(path)) throw new Error(`${path} belongs to another user now`);
}

/** Returns whether only this user may enter it. */
function isOwnDirectory(path: string): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false });
  return found?.isDirectory() === true && found.uid === process.getuid!() && (found.mode & 0o077) === 0;
}

function parseAssignments(bytes: Uint8Array): Map<string, string> {
  const assignments = new Map<string, string>();
  for (const line of Buffer.from(bytes).toString().split('\n')) {
    const equals = line.indexOf('=');
    if (equals > 0) assignments.set(line.slice(0, equals), line.slice(equals + 1));
  }
  return assignments;
}
