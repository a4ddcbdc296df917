// The file of a Unix socket, which somebody else may have replaced by his own.

import { randomBytes } from 'node:crypto';
import { lstatSync, unlinkSync } from 'node:fs';
import type { NativeShim } from '../shim.js';
import { AddressKind, encodeAddress } from './address.js';

/** Removes what stands at `path` if it is still the file with this inode. */
export function removeSocketFile(path: string, inode: number): void {
  try {
    if (lstatSync(path).ino === inode) unlinkSync(path);
  } catch {
    // Somebody has removed it already.
  }
}

/**
 * Removes a socket file that a former process has left behind: it would keep the path. Throws an Error for any other file, which
 * is not ours to remove.
 */
export function removeStaleSocket(path: string): void {
  if (path.startsWith('@')) return;
  try {
    if (!lstatSync(path).isSocket()) throw new Error('a file that is no socket has this path');
    unlinkSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}

/** Between bind() making a file and the kernel finding the socket by it, a new file looks abandoned. */
const MIN_AGE_MS = 1000;

/**
 * Removes the file of a Unix socket that this user's process has left when it was killed: one that nobody has bound any more. Anything
 * else stays, such as what another user owns. Does not throw.
 */
export function removeAbandonedSocket(shim: NativeShim, path: string): void {
  try {
    const file = lstatSync(path);
    const isOwn = file.isSocket() && file.uid === process.getuid!();
    if (!isOwn || Date.now() - file.ctimeMs < MIN_AGE_MS) return;
    if (isSocketBound(shim, encodeAddress({ kind: AddressKind.Unix, ip: '', port: 0, path }))) return;
    const now = lstatSync(path);
    // Another process may have replaced it meanwhile.
    if (now.ino === file.ino && now.ctimeMs === file.ctimeMs) unlinkSync(path);
  } catch {
    // It is not there, or cannot be reached.
  }
}

/** Whether a process has a socket of any type bound to this address, whether it listens or not. */
export function isSocketBound(shim: NativeShim, address: Uint8Array): boolean {
  const path = `@baton-probe-${process.pid}-${randomBytes(8).toString('hex')}`;
  const own = encodeAddress({ kind: AddressKind.Unix, ip: '', port: 0, path });
  const probe = shim.watchMessages(shim.openMeetingSocket(own), { onMessage() {}, onWritable() {}, onEnd() {} });
  try {
    probe.sendTo(address, new Uint8Array(0), []);
    return true;
  } catch (error) {
    // To a socket of another type no datagram goes either, but for another reason.
    const { code } = error as NodeJS.ErrnoException;
    return code !== 'ECONNREFUSED' && code !== 'ENOENT';
  } finally {
    probe.close();
  }
}
