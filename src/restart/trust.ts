// Whether a peer of a hot restart may be believed: the kernel vouches for the uid of whoever sends a datagram.

import { readFileSync } from 'node:fs';
import type { Credentials } from '../io/shim.js';

export interface TrustRules {
  /** Of this process. */
  readonly uid: number;
  /** What the uid of another user namespace is shown as. */
  readonly overflowUid: number;
  /** The sockets are files that only their owner may write to: whoever reaches them is the owner. */
  readonly hasPrivatePath: boolean;
}

/** The rules of this process; `mode`: permissions of its sockets, when they are files. */
export function trustRules(mode: number | undefined): TrustRules {
  return {
    uid: process.getuid!(),
    overflowUid: overflowUid(),
    hasPrivatePath: mode !== undefined && (mode & 0o077) === 0,
  };
}

/** Why the sender is not believed; undefined when it is. The same user and root are. */
export function distrust(credentials: Credentials | undefined, rules: TrustRules): string | undefined {
  if (credentials === undefined) return 'the kernel does not say whose it is';
  const { pid, uid } = credentials;
  if (uid === rules.uid || uid === 0) return undefined;
  if (uid !== rules.overflowUid) return `process ${pid} runs as uid ${uid}, this one as ${rules.uid}`;
  if (rules.hasPrivatePath) return undefined;
  return (
    `process ${pid} runs as a uid that this user namespace does not have; give all processes of the restart a ` +
    '--socket-path in the file system with --socket-mode 600, whose owner is believed'
  );
}

function overflowUid(): number {
  try {
    return Number(readFileSync('/proc/sys/kernel/overflowuid', 'utf8'));
  } catch {
    return 65534;
  }
}
