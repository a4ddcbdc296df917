// Filter chain matching: Envoy's rules one by one, and random chains and connections compared with a direct evaluation of the
// rules.

import t from 'tap';
import { Random } from '../../src/common/random.js';
import { CRITERIA, CRITERION_NAMES, overlapOf } from '../../src/config/fields/filter-chains.js';
import type { CidrRange, FilterChainMatch } from '../../src/config/generated/api.js';
import { type Address, AddressKind, ipAddress, NO_ADDRESS, parseIp } from '../../src/io/addresses/address.js';
import { ipRange, isInRange } from '../../src/io/addresses/ip-range.js';
import type { DetectedProtocols } from '../../src/io/tls/detected-protocols.js';
import { FilterChainTable } from '../../src/listener/filter-chain-match.js';
import type { ConnectionProperties } from '../../src/listener/network-filter.js';

t.test('the narrowest range is selected, and later criteria do not undo that', async (t) => {
  const choose = chooser({
    all: {},
    wide: { prefix_ranges: [range('10.0.0.0', 8)] },
    narrow: { prefix_ranges: [range('10.1.0.0', 16)], source_ports: [7] },
    six: { prefix_ranges: [range('fd00::', 8)] },
  });
  t.equal(choose('9.9.9.9:1', '192.0.2.1:80'), 'all');
  t.equal(choose('9.9.9.9:1', '10.2.0.1:80'), 'wide');
  t.equal(choose('9.9.9.9:7', '10.1.0.1:80'), 'narrow');
  t.equal(choose('9.9.9.9:8', '10.1.0.1:80'), 'fallback');
  t.equal(choose('[fd00::1]:8', '[fd12::1%1]:80'), 'six');
  t.equal(choose('[fd00::1]:8', '[fe80::1%1]:80'), 'all');
});

t.test(
  "the destination port precedes the destination address, as in the example of Envoy's documentation",
  async (t) => {
    const choose = chooser({
      port: { destination_port: 8080, source_prefix_ranges: [range('10.0.0.0', 8)] },
      address: { prefix_ranges: [range('192.0.2.1', 32)] },
    });
    t.equal(choose('10.0.0.1:1', '192.0.2.1:8080'), 'port');
    t.equal(choose('11.0.0.1:1', '192.0.2.1:8080'), 'fallback');
    t.equal(choose('11.0.0.1:1', '192.0.2.1:8081'), 'address');
  },
);

t.test('raw_buffer is more specific than no transport protocol', async (t) => {
  const choose = chooser({ any: { source_ports: [5] }, raw: { transport_protocol: 'raw_buffer', source_ports: [6] } });
  t.equal(choose('9.9.9.9:6', '10.1.0.1:80'), 'raw');
  t.equal(choose('9.9.9.9:5', '10.1.0.1:80'), 'fallback');
});

t.test('server names: the exact name, then the longest wildcard, then chains without names', async (t) => {
  const choose = chooser({
    exact: { server_names: ['a.example.com', 'Upper.Example.com'] },
    deep: { server_names: ['*.a.example.com'] },
    wild: { server_names: ['*.example.com'] },
    top: { server_names: ['*.com'] },
    all: {},
  });
  const named = (serverName: string) => choose('9.9.9.9:1', '192.0.2.1:443', tls({ serverName }));
  t.equal(named('a.example.com'), 'exact');
  t.equal(named('upper.example.com'), 'exact');
  t.equal(named('b.example.com'), 'wild');
  t.equal(named('b.a.example.com'), 'deep');
  t.equal(named('c.b.a.example.com'), 'deep');
  t.equal(named('example.com'), 'top', 'a wildcard does not match its own suffix');
  t.equal(named('.com'), 'top', 'Envoy compares the text of the wildcard');
  t.equal(named('com'), 'all');
  t.equal(named('example.com.'), 'all');
  t.equal(named(''), 'all');
  t.equal(choose('9.9.9.9:1', '192.0.2.1:443'), 'all', 'without listener filters');
});

t.test('a server name precedes the transport protocol, which precedes the application protocol', async (t) => {
  const choose = chooser({
    named: { server_names: ['a.org'], transport_protocol: 'raw_buffer' },
    tls: { transport_protocol: 'tls', application_protocols: ['h2'] },
    other: { application_protocols: ['http/1.1'] },
  });
  const at = (detected: Partial<DetectedProtocols>) => choose('9.9.9.9:1', '192.0.2.1:443', tls(detected));
  t.equal(at({ serverName: 'a.org', applicationProtocols: ['h2'] }), 'fallback');
  t.equal(at({ serverName: 'b.org', applicationProtocols: ['h2', 'http/1.1'] }), 'tls');
  t.equal(at({ applicationProtocols: ['http/1.1'] }), 'fallback');
  t.equal(at({ transportProtocol: '', applicationProtocols: ['http/1.1'] }), 'other');
});

t.test("the first of the client's application protocols that a chain has is decisive", async (t) => {
  const choose = chooser({
    two: { application_protocols: ['h2'], source_ports: [5] },
    one: { application_protocols: ['http/1.1', 'http/1.0'] },
    any: {},
  });
  const offering = (...applicationProtocols: string[]) =>
    choose('9.9.9.9:1', '192.0.2.1:443', tls({ applicationProtocols }));
  t.equal(offering('http/1.1', 'h2'), 'one');
  t.equal(offering('spdy/3', 'http/1.0'), 'one');
  t.equal(offering('h2', 'http/1.1'), 'fallback', 'later criteria do not bring other chains back');
  t.equal(offering('spdy/3'), 'any');
  t.equal(offering(), 'any');
});

t.test('wildcards overlap with names that are equal without their star', async (t) => {
  t.ok(overlapOf([{ server_names: ['*.a.com'] }, { server_names: ['.A.com'] }]));
  t.ok(overlapOf([{ server_names: ['b', 'a.com'] }, { server_names: ['A.com', 'c'] }]));
  t.notOk(overlapOf([{ server_names: ['*.a.com'] }, { server_names: ['a.com'] }]));
  t.notOk(overlapOf([{ application_protocols: ['h2'] }, { application_protocols: ['h2c'] }]));
});

t.test('source_type: local and external clients', async (t) => {
  const choose = chooser({ here: { source_type: 'SAME_IP_OR_LOOPBACK' }, there: { source_type: 'EXTERNAL' } });
  t.equal(choose('127.0.0.1:1', '10.0.0.1:80'), 'here');
  t.equal(choose('[::1]:1', '[::1]:80'), 'here');
  t.equal(choose('10.0.0.1:1', '10.0.0.1:80'), 'here');
  t.equal(choose('10.0.0.2:1', '10.0.0.1:80'), 'there');
  t.equal(choose('127.0.0.2:1', '127.0.0.1:80'), 'there');
  t.equal(choose(NO_ADDRESS, { ...NO_ADDRESS, kind: AddressKind.Unix, path: '/run/a' }), 'here');
});

t.test('a Unix socket matches no port, and matches address ranges as 255.255.255.255 does', async (t) => {
  const choose = chooser({
    port: { destination_port: 80 },
    some: { source_prefix_ranges: [range('255.0.0.0', 8)] },
    other: { source_prefix_ranges: [range('0.0.0.0', 1)] },
  });
  t.equal(choose(NO_ADDRESS, { ...NO_ADDRESS, kind: AddressKind.Unix, path: '/run/a' }), 'some');
});

t.test('a single chain without criteria needs no matching', async (t) => {
  t.equal(new FilterChainTable([{ match: { source_type: 'ANY', source_ports: [] }, chain: 'one' }], 'two').only, 'one');
  t.equal(new FilterChainTable([], 'two').only, 'two');
  t.equal(new FilterChainTable([{ match: { source_ports: [1] }, chain: 'one' }], 'two').only, undefined);
});

t.test('long lists are not multiplied in the table', async (t) => {
  const ranges = Array.from({ length: 1000 }, (_, index) => range(`10.${index >> 8}.${index & 255}.0`, 24));
  const source_ports = Array.from({ length: 1000 }, (_, index) => index + 1);
  const lists = { prefix_ranges: ranges, source_prefix_ranges: ranges, source_ports };
  const choose = chooser({
    one: { ...lists, source_type: 'EXTERNAL' },
    two: { ...lists, source_type: 'SAME_IP_OR_LOOPBACK' },
  });
  t.equal(choose('10.1.1.1:1000', '10.3.0.9:80'), 'one');
  t.equal(choose('10.3.0.9:1000', '10.3.0.9:80'), 'two');
  t.equal(choose('10.3.0.9:1001', '10.3.0.9:80'), 'fallback');
});

t.test('for random chains and connections, the table selects the same chain as a direct evaluation', async (t) => {
  const random = new Random();
  let decided = 0;
  for (let round = 0; round < 300; round++) {
    const matches: FilterChainMatch[] = [];
    for (let left = 1 + random.below(8); left > 0; left--) {
      const match = randomMatch(random);
      if (overlapOf([...matches, match]) === undefined) matches.push(match);
    }
    const table = new FilterChainTable(
      matches.map((match, chain) => ({ match, chain })),
      undefined,
    );
    for (let left = 100; left > 0; left--) {
      const properties = randomProperties(random);
      const expected = evaluateRules(matches, properties);
      if (expected !== undefined) decided++;
      if (table.find(properties) !== expected) {
        t.same(table.find(properties), expected, JSON.stringify({ matches, properties }));
        return;
      }
    }
  }
  t.ok(decided > 1000, 'enough connections matched a chain');
});

t.test('two matches overlap if each criterion has a common value', async (t) => {
  const random = new Random();
  let overlaps = 0;
  for (let round = 0; round < 20_000; round++) {
    const matches = [randomMatch(random), randomMatch(random)];
    const isOverlap = CRITERION_NAMES.every((criterion) => {
      const [one, other] = matches.map((match) => new Set<string>(CRITERIA[criterion](match)));
      return [...one!].some((value) => other!.has(value));
    });
    if (isOverlap) overlaps++;
    if ((overlapOf(matches) !== undefined) !== isOverlap) t.fail(JSON.stringify(matches));
  }
  t.ok(overlaps > 10);
});

/** Evaluates the rules without a table: each criterion keeps the chains with its most specific value. */
function evaluateRules(matches: readonly FilterChainMatch[], properties: ConnectionProperties): number | undefined {
  let left = [...matches.keys()];
  for (const criterion of CRITERION_NAMES) {
    const scores = left.map((index) => {
      const values: readonly string[] = CRITERIA[criterion](matches[index]!);
      return Math.max(...values.map((value) => specificity(criterion, value, properties)));
    });
    const best = Math.max(...scores);
    if (best < 0) return undefined;
    left = left.filter((_, at) => scores[at] === best);
  }
  return left[0];
}

/** Returns -1 if the connection does not match, 0 for an unset criterion. */
function specificity(criterion: string, value: string, properties: ConnectionProperties): number {
  const { detected, direct, local, remote } = properties;
  if (value === '') return 0;
  const isLoopback = remote.ip === '127.0.0.1' || remote.ip === '::1';
  switch (criterion) {
    case 'destination_port':
      return Number(value) === local.port ? 1 : -1;
    case 'source_ports':
      return Number(value) === remote.port ? 1 : -1;
    case 'transport_protocol':
      return value === (detected?.transportProtocol || 'raw_buffer') ? 1 : -1;
    case 'server_names': {
      const name = detected?.serverName ?? '';
      if (value === name) return 1000;
      return value.startsWith('.') && name.endsWith(value) ? value.length : -1;
    }
    case 'application_protocols': {
      const at = detected?.applicationProtocols.indexOf(value) ?? -1;
      return at < 0 ? -1 : 1000 - at;
    }
    case 'source_type':
      return (value === 'SAME_IP_OR_LOOPBACK') === (isLoopback || remote.ip === local.ip) ? 1 : -1;
    default: {
      const [prefix = '', bits] = value.split('/');
      const { ip } = criterion === 'prefix_ranges' ? local : criterion === 'source_prefix_ranges' ? remote : direct;
      return isInRange(ipRange(prefix, Number(bits))!, parseIp(ip)!) ? 1 + Number(bits) : -1;
    }
  }
}

const RANGES = [
  range('0.0.0.0', 0),
  range('10.0.0.0', 8),
  range('10.1.2.3', 13),
  range('10.1.0.0', 16),
  range('10.1.2.3', 32),
  range('127.0.0.0', 8),
  range('::', 0),
  range('fd00::', 8),
  range('fd00:1::', 33),
  range('fd00:1::1', 128),
];
const IPS = [
  '10.1.2.3',
  '10.1.0.0',
  '10.200.0.1',
  '127.0.0.1',
  '192.0.2.1',
  '::1',
  'fd00:1::1',
  'fd00:1::2',
  'fe80::1',
];
const PORTS = [1, 2, 3];
const NAMES = ['a.example.com', '*.example.com', '*.a.example.com', '*.com', 'Example.com'];
const SERVER_NAMES = ['', 'a.example.com', 'b.example.com', 'b.a.example.com', 'example.com', 'org'];
const PROTOCOLS = ['h2', 'http/1.1', 'h2c'];

function randomMatch(random: Random): FilterChainMatch {
  const some = <T>(list: readonly T[]): T => list[random.below(list.length)]!;
  const maybe = <K extends string, V>(key: K, value: () => V) => (random.below(3) === 0 ? { [key]: value() } : {});
  const lists = <T>(list: readonly T[]) => [some(list), some(list)];
  return {
    ...maybe('destination_port', () => some(PORTS)),
    ...maybe('prefix_ranges', () => lists(RANGES)),
    ...maybe('direct_source_prefix_ranges', () => lists(RANGES)),
    ...maybe('source_type', () => some(['ANY', 'SAME_IP_OR_LOOPBACK', 'EXTERNAL'] as const)),
    ...maybe('source_prefix_ranges', () => lists(RANGES)),
    ...maybe('source_ports', () => lists(PORTS)),
    ...maybe('transport_protocol', () => some(['', 'raw_buffer', 'tls'])),
    ...maybe('server_names', () => lists(NAMES)),
    ...maybe('application_protocols', () => lists(PROTOCOLS)),
  };
}

function randomAddress(random: Random): Address {
  return ipAddress(IPS[random.below(IPS.length)]!, PORTS[random.below(PORTS.length)]!)!;
}

function randomProperties(random: Random): ConnectionProperties {
  const some = <T>(list: readonly T[]): T => list[random.below(list.length)]!;
  const detected = tls({
    serverName: some(SERVER_NAMES),
    applicationProtocols: PROTOCOLS.filter(() => random.below(2) === 0),
    transportProtocol: some(['', 'tls']),
  });
  return {
    remote: randomAddress(random),
    direct: randomAddress(random),
    local: randomAddress(random),
    detected: random.below(4) === 0 ? undefined : detected,
  };
}

/** Returns what a listener filter detects on a TLS connection. */
function tls(detected: Partial<DetectedProtocols>): DetectedProtocols {
  return { transportProtocol: 'tls', applicationProtocols: [], serverName: '', ja3: '', ja4: '', ...detected };
}

/** Returns a function that selects a chain's name by the properties of a connection. */
function chooser(matches: Record<string, FilterChainMatch>) {
  const chains = Object.entries(matches).map(([chain, match]) => ({ match, chain }));
  const table = new FilterChainTable(chains, 'fallback');
  return (remote: string | Address, local: string | Address, detected?: DetectedProtocols) =>
    table.find({ remote: addressOf(remote), direct: addressOf(remote), local: addressOf(local), detected });
}

function addressOf(address: string | Address): Address {
  if (typeof address !== 'string') return address;
  const colon = address.lastIndexOf(':');
  return ipAddress(address.slice(0, colon).replace(/[[\]]/g, ''), Number(address.slice(colon + 1)))!;
}

function range(address_prefix: string, prefix_len: number): CidrRange {
  return { address_prefix, prefix_len };
}
