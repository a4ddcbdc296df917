// The datagram socket on which children say that they are live (sd_notify(3)), and from which the service manager is told.

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

/** One message: its assignments by name, and the process that the kernel says it is from. */
export type NotifyListener = (pid: number, words: ReadonlyMap<string, string>) => void;

/** Of the directories that are made. */
const PREFIX = 'baton-restarter-';
const SOCKET = 'notify';

/** A socket that has been lost is made anew so often. */
const REOPEN_MS = 1000;

/**
 * Both directions share one socket of the shim: it tells the sender of each message (SO_PASSCRED), and it reaches abstract
 * names, which the unix-dgram package cuts at their first byte.
 */
export class NotifySocket {
  /** What children get as NOTIFY_SOCKET: a path in a directory that only this user may enter. */
  readonly path: string;
  readonly #shim: NativeShim;
  readonly #listener: NotifyListener;
  readonly #lost = new OccasionalLog((text) => logger.warning(text));
  #socket: NativeMessageSocket;
  /** Of its file. */
  #inode = 0;

  /** The directory lies in `parent`, and is removed when this process exits. Throws an Error with `code`. */
  constructor(shim: NativeShim, parent: string, listener: NotifyListener) {
    removeAbandoned(shim, parent);
    const directory = mkdtempSync(join(parent, PREFIX));
    process.once('exit', () => rmSync(directory, { recursive: true, force: true }));
    this.path = join(directory, SOCKET);
    this.#shim = shim;
    this.#listener = listener;
    this.#socket = this.#open();
  }

  /** Sends one message to the socket of another process. False when that takes none now. Throws an Error with `code`. */
  send(address: Uint8Array, text: string): boolean {
    return this.#socket.sendTo(address, Buffer.from(text), []);
  }

  /** Makes it again if its file is gone: programs that clean up directories for temporary files may remove it. */
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
      logger.error(`children cannot say that they are live: ${messageOf(error)}`);
    }
  }

  #open(): NativeMessageSocket {
    const shim = this.#shim;
    const address = encodeAddress({ kind: AddressKind.Unix, ip: '', port: 0, path: this.path });
    const fd = shim.openMeetingSocket(address);
    this.#inode = lstatSync(this.path, { throwIfNoEntry: false })?.ino ?? 0;
    return shim.watchMessages(fd, {
      onMessage: (bytes, fds, credentials) => {
        // A sender that waits for its message to be read (BARRIER=1) waits for the end of its descriptor.
        for (const fd of fds) shim.closeDescriptor(fd);
        if (credentials !== undefined) this.#listener(credentials.pid, readWords(bytes));
      },
      onLost: (errno, credentials) => {
        this.#lost.log(`what process ${credentials?.pid} said on the notify socket is lost: ${errorName(errno)}`);
      },
      onWritable() {},
      onEnd: (errno) => {
        logger.error(`the notify socket has ended: ${errorName(errno)}; it is opened anew`);
        this.#reopen();
      },
    });
  }

  #reopen(): void {
    try {
      rmSync(this.path, { force: true });
      this.#socket = this.#open();
    } catch (error) {
      logger.error(`children cannot say that they are live: ${messageOf(error)}; it is tried again`);
      setTimeout(() => this.#reopen(), REOPEN_MS);
    }
  }
}

/** Wrappers that were killed have left their directories: those of this user, in whose socket nobody listens. */
function removeAbandoned(shim: NativeShim, parent: string): void {
  try {
    for (const name of readdirSync(parent)) {
      const directory = join(parent, name);
      if (!name.startsWith(PREFIX) || !isOwnDirectory(directory)) continue;
      const path = join(directory, SOCKET);
      const isThere = lstatSync(path, { throwIfNoEntry: false }) !== undefined;
      removeAbandonedSocket(shim, path);
      // One without a socket may have been made just now.
      if (isThere && lstatSync(path, { throwIfNoEntry: false }) === undefined) rmdirSync(directory);
    }
  } catch (error) {
    logger.warning(`directories that other wrappers have left stay: ${messageOf(error)}`);
  }
}

/** Where the socket's directory is made: the service's own directory, if its manager has made one. */
export function notifyDirectory(env: NodeJS.ProcessEnv): string {
  // Several directories are separated by colons.
  return env['RUNTIME_DIRECTORY']?.split(':')[0] || tmpdir();
}

/** An existing one may belong to another user. Throws an Error then. */
function makeOwnDirectory(path: string): void {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return void mkdirSync(path, { mode: 0o700 });
  if (!isOwnDirectory(path)) throw new Error(`${path} belongs to another user now`);
}

/** Only this user may enter it. */
function isOwnDirectory(path: string): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false });
  return found?.isDirectory() === true && found.uid === process.getuid!() && (found.mode & 0o077) === 0;
}

function readWords(bytes: Uint8Array): Map<string, string> {
  const words = new Map<string, string>();
  for (const line of Buffer.from(bytes).toString().split('\n')) {
    const equals = line.indexOf('=');
    if (equals > 0) words.set(line.slice(0, equals), line.slice(equals + 1));
  }
  return words;
}
