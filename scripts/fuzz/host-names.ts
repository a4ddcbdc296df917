// Mutated names and addresses of hosts, as requests name them in dynamic forward proxies and in clusters of type ORIGINAL_DST. They run in
// this process, without name servers.

import { StreamInfo } from '../../src/access-log/stream/stream-info.js';
import type { Random } from '../../src/common/random.js';
import { headerKey } from '../../src/common/text/header-names.js';
import { HeaderBlock } from '../../src/http/headers/header-block.js';
import { addressOfSockaddr, addressText, encodeAddress, parseAddress } from '../../src/io/addresses/address.js';
import { Memory } from '../../src/io/memory.js';
import { TimingWheel } from '../../src/io/time/timing-wheel.js';
import { DnsCache } from '../../src/upstream/dns/dns-cache.js';
import { dnsCacheSpec } from '../../src/upstream/dns/dns-cache-spec.js';
import { AddressReader } from '../../src/upstream/requested-hosts/destination.js';
import { withPort } from '../../src/upstream/requested-hosts/name-reader.js';
import { mutateBytes } from './mutation.js';
import { Finding, type Scope } from './scope.js';

/** Inputs between two looks at the clock. A cache has as many names. */
const INPUTS_PER_STEP = 500;
const MAX_INPUT_MS = 1000;
/** As for a head. */
const MAX_VALUE = 60 * 1024;
const MAX_NAME = 254;
const HEADER = 'x-envoy-original-dst-host';
const LAYOUT = { receiveBytes: 65_536, scratchBytes: 4 * 1024 * 1024, arenaBytes: 4 * 1024 * 1024 };

const SEEDS = [
  ...['example.com', 'www.example.com:8080', 'a_b.example.com.:443', '127.0.0.1:80', '10.0.0.1', '[::1]:443', '[::1]'],
  ...[
    '[::ffff:127.0.0.1]:80',
    '[2001:db8::1%2]:80',
    '[fe80::1%lo]:9',
    '2130706433:80',
    '0x7f.1:80',
    '/run/x.sock',
    '@x',
  ],
  ...['unix:///run/x.sock', '1.2.3.4:80,5.6.7.8:80'],
].map((text) => Buffer.from(text));
const TOKENS = [
  ':',
  '::',
  '.',
  '..',
  '[',
  ']',
  '%',
  '0',
  '65535',
  '65536',
  '00080',
  '::ffff:',
  'xn--',
  ',',
  ' ',
  '@',
].map((text) => Buffer.from(text));

/** Throws a Finding when a name causes an exception, reaches a name server that cannot have it, or has no stable address. */
export async function fuzzHostNames(_scope: Scope, random: Random, durationMs: number): Promise<string> {
  const memory = new Memory(LAYOUT);
  const end = performance.now() + durationMs;
  let inputs = 0;
  let names = 0;
  let addresses = 0;
  while (performance.now() < end) {
    const { cache, hosts } = cacheOfNames();
    for (let left = INPUTS_PER_STEP; left > 0; left--, inputs++) {
      const text = mutateBytes(random, SEEDS, TOKENS)
        .toString('latin1')
        .replace(/[\0\r\n]/g, '')
        .slice(0, MAX_VALUE);
      attempt(text, () => {
        cache.request(withPort(text, 80));
        if (readsAddress(memory, text)) addresses++;
      });
      memory.endTurn();
    }
    await new Promise(setImmediate);
    names += hosts();
    cache.close();
  }
  return `${inputs} inputs (${names} names, ${addresses} addresses); no defect`;
}

function attempt(text: string, act: () => void): void {
  const begin = performance.now();
  try {
    act();
    const ms = performance.now() - begin;
    if (ms > MAX_INPUT_MS) throw new Error(`it took ${Math.round(ms)} ms`);
  } catch (error) {
    throw new Finding(`${(error as Error).stack} for ${JSON.stringify(text.slice(0, 2000))}`);
  }
}

/** Returns a cache whose name server has all names that there can be, and the number of its names with an address. */
function cacheOfNames(): { readonly cache: DnsCache; readonly hosts: () => number } {
  const fail = (error: unknown) => {
    throw error;
  };
  const cache: DnsCache = new DnsCache(dnsCacheSpec({ name: 'fuzz', max_hosts: INPUTS_PER_STEP }), {
    timers: new TimingWheel({ nowMs: 0, onError: fail }),
    random: { fraction: () => 0 } as Random,
    now: () => 0,
    count: () => {},
    sized: () => {},
    resolve(name) {
      if (name.length > MAX_NAME || !/^[\w.:%-]+$/.test(name)) fail(new Error(`a name server is asked for '${name}'`));
      return Promise.resolve({ status: 'found', addresses: ['192.0.2.1'], ttlMs: 0 });
    },
  });
  cache.add({ changed: () => {}, removed: () => {}, failed: () => {}, isUsed: () => false });
  return { cache, hosts: () => [...cache.hosts()].length };
}

/** Returns whether the text is an address. Workers must find the host by the address of its socket. */
function readsAddress(memory: Memory, text: string): boolean {
  const headers = new HeaderBlock(memory);
  headers.add(headerKey(HEADER), text);
  const spec = { kind: 'address', maxWaiting: 1, header: HEADER, metadata: [], port: 0 } as const;
  const key = new AddressReader(spec, () => {}).read(headers, new StreamInfo());
  if (key === undefined) return false;
  const found = addressText(addressOfSockaddr(encodeAddress(parseAddress(key)!)));
  if (found !== key) throw new Error(`'${key}' is known as '${found}'`);
  return true;
}
