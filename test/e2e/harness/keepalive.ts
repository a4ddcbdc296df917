// TCP keepalive as the kernel reports it.

import { readFileSync } from 'node:fs';

/** Returns when the kernel will probe the connections to a port: see proc_net_tcp in the kernel documentation. */
export function keepaliveSeconds(port: number): number[] {
  const remote = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const fields = readFileSync('/proc/net/tcp', 'latin1')
    .split('\n')
    .map((line) => line.trim().split(/\s+/));
  const timers = fields.filter(([, , to, state]) => to === remote && state === '01').map((line) => line[5]!.split(':'));
  return timers.filter(([kind]) => kind === '02').map(([, when]) => Number.parseInt(when!, 16) / 100);
}
