// /etc/resolv.conf: which name servers are asked, and which domains short names are looked up in (resolv.conf(5)).

import { ipAddress, parseAddress } from '../../io/addresses/address.js';

export interface ResolvConf {
  /** Name servers as `ip` or `ip:port`, in order. */
  readonly servers: readonly string[];
  readonly search: readonly string[];
  /** Names with at least this many dots are first tried as they are. */
  readonly ndots: number;
  /** Time for one query; undefined when the file does not say. */
  readonly timeoutMs: number | undefined;
  /** Queries to each server; undefined when the file does not say. */
  readonly attempts: number | undefined;
}

/** The limits of the C library. */
const MOST_DOTS = 15;
const LONGEST_TIMEOUT_S = 30;
const MOST_ATTEMPTS = 5;

/** `hostDomain`: what short names are looked up in when the file names no domain: that of the machine's own name. */
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
  const timeout = option(options, 'timeout', LONGEST_TIMEOUT_S);
  return {
    servers: servers.length === 0 ? ['127.0.0.1'] : servers,
    search: search.map(withoutFinalDot).filter((domain) => domain !== ''),
    ndots: option(options, 'ndots', MOST_DOTS) ?? 1,
    timeoutMs: timeout === undefined ? undefined : Math.max(timeout, 1) * 1000,
    attempts: option(options, 'attempts', MOST_ATTEMPTS),
  };
}

/** The names to ask for in turn, the first that exists being the answer. */
export function candidateNames(name: string, { search, ndots }: ResolvConf): string[] {
  if (name.endsWith('.')) return [withoutFinalDot(name)];
  const inDomains = search.map((domain) => `${name}.${domain}`);
  const dots = name.split('.').length - 1;
  return dots >= ndots ? [name, ...inDomains] : [...inDomains, name];
}

/** Node ends the process for a server that it does not take. */
function isServer(text: string): boolean {
  return ipAddress(text, 0) !== undefined || (parseAddress(text)?.port ?? 0) > 0;
}

function option(options: readonly string[], name: string, most: number): number | undefined {
  const text = options.findLast((word) => word.startsWith(`${name}:`))?.slice(name.length + 1);
  return text !== undefined && /^[0-9]+$/.test(text) ? Math.min(Number(text), most) : undefined;
}

function withoutFinalDot(name: string): string {
  return name.endsWith('.') ? name.slice(0, -1) : name;
}
