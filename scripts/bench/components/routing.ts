// CPU time of routing and header rules for one request: `npm run build && node dist/scripts/bench/components/routing.js`.

import { StreamInfo } from '../../../src/access-log/stream/stream-info.js';
import { Random } from '../../../src/common/random.js';
import { headerIdOf } from '../../../src/common/text/header-names.js';
import type { RouteConfiguration } from '../../../src/config/generated/api.js';
import { ForwardingRules } from '../../../src/http/headers/edge/forwarding-headers.js';
import { HeaderBlock, Method } from '../../../src/http/headers/header-block.js';
import { PathNormalizer } from '../../../src/http/normalization/path-normalization.js';
import { RetryPolicy } from '../../../src/http/routing/retries/retry-policy.js';
import { RetryState } from '../../../src/http/routing/retries/retry-state.js';
import { buildRouteTable } from '../../../src/http/routing/tables/route-table.js';
import { Memory } from '../../../src/io/memory.js';

const ROUNDS = 7;
const CALLS = 400_000;

const memory = new Memory();
const random = new Random(1);

const CURL = ['Host: www.example.com', 'User-Agent: curl/8.5.0', 'Accept: */*'];
const BROWSER = [
  'Host: www.example.com',
  'User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0 Safari/537.36',
  'Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
  'Accept-Language: en-US,en;q=0.5',
  'Accept-Encoding: gzip, deflate, br',
  'Sec-Fetch-Dest: document',
  'Sec-Fetch-Mode: navigate',
  'Sec-Fetch-Site: none',
  'Upgrade-Insecure-Requests: 1',
  'Cookie: session=0123456789abcdef; theme=dark',
];

/** Returns a head whose bytes are kept, and a function that resets `block` to it. */
function requestOf(path: string, lines: readonly string[]): (block: HeaderBlock) => void {
  const text = `GET ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n`;
  const at = memory.permanent(text.length);
  for (let i = 0; i < text.length; i++) memory.bytes[at + i] = text.charCodeAt(i);
  const fields: number[][] = [];
  let start = at + `GET ${path} HTTP/1.1\r\n`.length;
  const firstLine = start;
  for (const line of lines) {
    const nameEnd = start + line.indexOf(':');
    const end = start + line.length;
    fields.push([headerIdOf(memory.bytes, memory.view, start, nameEnd), start, nameEnd, nameEnd + 2, end, end + 2]);
    start = end + 2;
  }
  return (block) => {
    block.clear();
    block.method = Method.Get;
    block.methodStart = at;
    block.methodEnd = at + 3;
    block.pathStart = at + 4;
    block.pathEnd = at + 4 + path.length;
    block.startLineStart = at;
    block.startLineEnd = firstLine;
    for (let i = 0; i < fields.length; i++) {
      const field = fields[i]!;
      block.addField(field[0]!, field[1]!, field[2]!, field[3]!, field[4]!, field[5]!);
    }
  };
}

/** Prints the median CPU time of several rounds minus `baseline`. Returns nanoseconds per call. */
function measure(name: string, call: () => void, baseline = 0): number {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const start = process.cpuUsage();
    for (let i = 0; i < CALLS; i++) call();
    const { user, system } = process.cpuUsage(start);
    times.push(((user + system) * 1000) / CALLS);
  }
  const median = times.sort((a, b) => a - b)[ROUNDS >> 1]! - baseline;
  process.stdout.write(`${name.padEnd(66)} ${median.toFixed(1).padStart(8)} ns\n`);
  return median;
}

function tableBench(name: string, config: RouteConfiguration, path: string, lines: readonly string[]): void {
  const table = buildRouteTable(config, (cluster) => cluster);
  const block = new HeaderBlock(memory);
  requestOf(path, lines)(block);
  if (table.match(block, 0) === undefined) throw new Error(`${name}: no route`);
  measure(name, () => {
    table.match(block, 0);
    memory.endTurn();
  });
}

const fourPrefixes = ['/static/', '/images/', '/api/', '/'].map((prefix) => ({
  match: { prefix },
  route: { cluster: 'c' },
}));
const thousandHosts = Array.from({ length: 1000 }, (_, index) => ({
  name: `host ${index}`,
  domains: [index === 567 ? 'www.example.com' : `www.example-${index}.com`],
  routes: fourPrefixes,
}));
const wildcards = thousandHosts.map((host, index) => ({
  ...host,
  domains: [index === 567 ? '*.example.com' : `*.example-${index}.com`, `shop-${index}.*`],
}));

tableBench(
  'match: *, 4 prefix routes, last',
  { virtual_hosts: [{ domains: ['*'], routes: fourPrefixes }] },
  '/index.html',
  CURL,
);
tableBench(
  'match: *, 4 prefix routes, third',
  { virtual_hosts: [{ domains: ['*'], routes: fourPrefixes }] },
  '/api/v1/users/1',
  CURL,
);
tableBench('match: 1,000 virtual hosts, exact', { virtual_hosts: thousandHosts }, '/index.html', CURL);
tableBench('match: 1,000 virtual hosts, suffixes and prefixes', { virtual_hosts: wildcards }, '/index.html', CURL);
tableBench(
  'match: *, 100 prefix routes, last',
  {
    virtual_hosts: [
      {
        domains: ['*'],
        routes: [...Array(99).keys()]
          .map((index) => `/api/v${index}/`)
          .concat('/')
          .map((prefix) => ({ match: { prefix }, route: { cluster: 'c' } })),
      },
    ],
  },
  '/api/users',
  CURL,
);
tableBench(
  'match: *, safe_regex',
  {
    virtual_hosts: [
      {
        domains: ['*'],
        routes: [{ match: { safe_regex: { regex: '/api/v[0-9]+/users/.*' } }, route: { cluster: 'c' } }],
      },
    ],
  },
  '/api/v1/users/1',
  CURL,
);
tableBench(
  'match: *, header and query conditions',
  {
    virtual_hosts: [
      {
        domains: ['*'],
        routes: [
          {
            match: {
              prefix: '/',
              headers: [{ name: 'user-agent', string_match: { prefix: 'curl' } }],
              query_parameters: [{ name: 'b', string_match: { exact: '2' } }],
            },
            route: { cluster: 'c' },
          },
        ],
      },
    ],
  },
  '/x?a=1&b=2',
  CURL,
);

const local = { ip: '192.0.2.1', cluster: '', node: '', zone: '' };
for (const [kind, lines] of [
  ['curl', CURL],
  ['browser', BROWSER],
] as const) {
  const make = requestOf('/index.html', lines);
  const block = new HeaderBlock(memory);
  const baseline = measure(`(reset of the ${kind} head)`, () => {
    make(block);
    memory.endTurn();
  });
  const run = (name: string, change: () => void): void => {
    measure(
      `${name}, ${kind} head`,
      () => {
        make(block);
        change();
        memory.endTurn();
      },
      baseline,
    );
  };
  const client = { remoteIp: '203.0.113.7', scheme: 'http', localPort: '80', security: undefined } as const;
  const edge = new ForwardingRules({ use_remote_address: true }, local);
  run('forwarding: edge', () => edge.apply(block, client, random));
  const inner = new ForwardingRules({}, local);
  run('forwarding: behind a proxy without x-forwarded headers', () => inner.apply(block, client, random));
  const paths = PathNormalizer.of({ normalize_path: true, merge_slashes: true })!;
  run('path normalization, nothing to do', () => paths.apply(block));
  const info = new StreamInfo();
  const route = buildRouteTable(
    {
      virtual_hosts: [
        {
          domains: ['*'],
          routes: [
            {
              match: { prefix: '/' },
              route: { cluster: 'c', prefix_rewrite: '/v1/', host_rewrite_literal: 'backend' },
              request_headers_to_add: [{ header: { key: 'x-team', value: 'web' } }],
              request_headers_to_remove: ['x-debug'],
            },
          ],
        },
      ],
    },
    (cluster) => cluster,
  ).match(block, 0)!;
  run('route: one constant header, one removed, host and prefix rewritten', () => route.finalizeRequest(block, info));
  const policy = new RetryPolicy({ retry_on: '5xx' }, '');
  const retry = new RetryState();
  run('retry state for a request', () => retry.begin(policy, block));
}
