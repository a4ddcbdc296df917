// Parses /etc/hosts: addresses of names, which take precedence over name servers (hosts(5)).

import { AddressKind, ipAddress } from '../../io/addresses/address.js';

/** Addresses of one name in the order of the file. */
export interface HostsEntry {
  readonly ip4: string[];
  readonly ip6: string[];
}

/** Entries by lower-case name. Invalid lines are ignored, as in the C library. */
export type HostsTable = ReadonlyMap<string, HostsEntry>;

export function parseHosts(text: string): HostsTable {
  const table = new Map<string, HostsEntry>();
  for (const line of text.split('\n')) {
    const [ip, ...names] = withoutComment(line).split(/\s+/);
    const address = ipAddress(ip!, 0);
    if (address === undefined) continue;
    for (const name of names) {
      const key = name.toLowerCase();
      let entry = table.get(key);
      if (entry === undefined) table.set(key, (entry = { ip4: [], ip6: [] }));
      const list = address.kind === AddressKind.Ip4 ? entry.ip4 : entry.ip6;
      if (!list.includes(address.ip)) list.push(address.ip);
    }
  }
  return table;
}

function withoutComment(line: string): string {
  const hash = line.indexOf('#');
  return (hash < 0 ? line : line.slice(0, hash)).trim();
}
