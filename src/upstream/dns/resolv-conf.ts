// Parses /etc/resolv.conf: the name servers, and the search domains of short names (resolv.conf(5)).

import { ipAddress, parseAddress } from '../../io/addresses/address.js';

export interface ResolvConf {
  /** Name servers as `ip` or `ip:port`, in order. */
  readonly servers: readonly string[];
  /** The file names no server: the only one is this machine. */
  readonly isServerDefault: boolean;
  readonly search: readonly string[];
  /** Names with at least this many dots are first tried unchanged. */
  readonly ndots: number;
  /** Time limit of one query; undefined: not in the file. */
  readonly timeoutMs: number | undefined;
  /** Queries to each server; undefined: not in the file. */
  readonly attempts: number | undefined;
}

/** The limits of the C library. */
const MAX_DOTS = 15;
const MAX_TIMEOUT_S = 30;
const MAX_ATTEMPTS = 5;

/** `hostDomain` is the domain of the machine's own name, the default search domain. */
export function parseResolvConf(text: string, hostDomain: string): ResolvConf {
  const servers: string[] = [];
  let search = hostDomain === '' ? [] : [hostDomain];
  let options: readonly string[] = [];
  for (const line of text.split('\n')) {
    if (/^\s*[#;]/.test(line)) continue;
    const [keyword, ...words] = line.trim().split(/\s+/);
    if (keyword === 'nameserver' && isServer(words[0] ?? '')) servers.push(words[0]!);
    // The last of several domain and search lines counts.
    if (keyword === 'domain' && words.length > 0) search = words.slice(0, 1);
    if (keyword === 'search') search = words;
    if (keyword === 'options') options = [...options, ...words];
  }
  const timeout = option(options, 'timeout', MAX_TIMEOUT_S);
  return {
    servers: servers.length === 0 ? ['127.0.0.1'] : servers,
    isServerDefault: servers.length === 0,
    search: search.map(withoutFinalDot).filter((domain) => domain !== ''),
    ndots: option(options, 'ndots', MAX_DOTS) ?? 1,
    timeoutMs: timeout === undefined ? undefined : Math.max(timeout, 1) * 1000,
    attempts: option(options, 'attempts', MAX_ATTEMPTS),
  };
}

/** Returns the names to query in turn; the first that exists is the answer. */
export function candidateNames(name: string, { search, ndots }: ResolvConf): string[] {
  if (name.endsWith('.')) return [withoutFinalDot(name)];
  const inDomains = search.map((domain) => `${name}.${domain}`);
  const dots = name.split('.').length - 1;
  return dots >= ndots ? [name, ...inDomains] : [...inDomains, name];
}

/** Returns whether Node accepts the server: it ends the process for an invalid one. */
function isServer(text: string): boolean {
  return ipAddress(text, 0) !== undefined || (parseAddress(text)?.port ?? 0) > 0;
}

function option(options: readonly string[], name: string, max: number): number | undefined {
  const text = options.findLast((word) => word.startsWith(`${name}:`))?.slice(name.length + 1);
  return text !== undefined && /^[0-9]+$/.test(text) ? Math.min(Number(text), max) : undefined;
}

function withoutFinalDot(name: string): string {
  return name.endsWith('.') ? name.slice(0, -1) : name;
}
