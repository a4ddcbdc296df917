// Listening sockets of a process as the kernel reports them.

import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** Returns the TCP ports that a process listens on, one for each socket. */
export function listeningPorts(pid: number): number[] {
  const inodes = new Set<string>();
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    try {
      const match = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`));
      if (match !== null) inodes.add(match[1]!);
    } catch {
      // Closed between the two calls.
    }
  }
  return ['tcp', 'tcp6'].flatMap((table) =>
    readFileSync(`/proc/${pid}/net/${table}`, 'utf8')
      .split('\n')
      .slice(1)
      .map((line) => line.trim().split(/\s+/))
      .filter((fields) => fields[3] === LISTEN && inodes.has(fields[9]!))
      .map((fields) => Number.parseInt(fields[1]!.split(':')[1]!, 16)),
  );
}

const LISTEN = '0A';
