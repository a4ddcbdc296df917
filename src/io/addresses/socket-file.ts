// Removes files of Unix sockets, which another process may have replaced.

import { randomBytes } from 'node:crypto';
import { lstatSync, unlinkSync } from 'node:fs';
import type { NativeShim } from '../shim.js';
import { AddressKind, encodeAddress } from './address.js';

/** Removes the file at `path` if it still has this inode. */
export function removeSocketFile(path: string, inode: number): void {
  try {
    if (lstatSync(path).ino === inode) unlinkSync(path);
  } catch {
    // Already removed.
  }
}

/** Removes a socket file that an earlier process left behind, which would block the path. Throws an Error for any other file. */
export function removeStaleSocket(path: string): void {
  if (path.startsWith('@')) return;
  try {
    if (!lstatSync(path).isSocket()) throw new Error('a file at this path is not a socket');
    unlinkSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}

/** Younger files are kept: for a moment after bind() has created a file, the kernel does not find the socket by it. */
const MIN_AGE_MS = 1000;

/**
 * Removes a socket file that a killed process of this user left behind and that no socket is bound to. Keeps all other files, such as those
 * of other users. Does not throw.
 */
export function removeAbandonedSocket(shim: NativeShim, path: string): void {
  try {
    const file = lstatSync(path);
    const isOwn = file.isSocket() && file.uid === process.getuid!();
    if (!isOwn || Date.now() - file.ctimeMs < MIN_AGE_MS) return;
    if (isSocketBound(shim, encodeAddress({ kind: AddressKind.Unix, ip: '', port: 0, path }))) return;
    const now = lstatSync(path);
    // Another process may have replaced the file meanwhile.
    if (now.ino === file.ino && now.ctimeMs === file.ctimeMs) unlinkSync(path);
  } catch {
    // The file does not exist or is inaccessible.
  }
}

/** Returns whether any process has a socket of any type bound to this address, listening or not. */
export function isSocketBound(shim: NativeShim, address: Uint8Array): boolean {
  const path = `@baton-probe-${process.pid}-${randomBytes(8).toString('hex')}`;
  const own = encodeAddress({ kind: AddressKind.Unix, ip: '', port: 0, path });
  const probe = shim.watchMessages(shim.openMeetingSocket(own), { onMessage() {}, onWritable() {}, onEnd() {} });
  try {
    probe.sendTo(address, new Uint8Array(0), []);
    return true;
  } catch (error) {
    // A datagram to a socket of another type fails too, with another code.
    const { code } = error as NodeJS.ErrnoException;
    return code !== 'ECONNREFUSED' && code !== 'ENOENT';
  } finally {
    probe.close();
  }
}
