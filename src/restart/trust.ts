// Decides whether a peer of a hot restart is trusted, by the sender's uid, which the kernel guarantees.

import { readFileSync } from 'node:fs';
import type { Credentials } from '../io/shim.js';

export interface TrustRules {
  /** Uid of this process. */
  readonly uid: number;
  /** The uid that stands for those of other user namespaces. */
  readonly overflowUid: number;
  /** The sockets are files that only their owner may write to: any sender is the owner. */
  readonly hasPrivatePath: boolean;
}

/** Returns the rules of this process; `mode`: permissions of its sockets, if they are files. */
export function trustRules(mode: number | undefined): TrustRules {
  return {
    uid: process.getuid!(),
    overflowUid: overflowUid(),
    hasPrivatePath: mode !== undefined && (mode & 0o077) === 0,
  };
}

/** Returns why the sender is not trusted; undefined when it is. The same user and root are trusted. */
export function distrust(credentials: Credentials | undefined, rules: TrustRules): string | undefined {
  if (credentials === undefined) return 'the kernel reports no sender';
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
