// Header sanitizing as in Envoy: headers reserved for proxies are removed from external requests and from responses.

import type { Test } from 'tap';
import { besideEnvoy, type ProxyProgram } from '../../harness/envoy.js';
import { type Config, connectRaw, staticCluster } from '../../harness/index.js';
import { headerOption, managerOf, routeTo, startProxy } from '../proxy.js';
import { response, startRawUpstream } from '../raw-upstream.js';

const INTERNAL: Config = {
  cidr_ranges: ['127.0.0.0', '10.0.0.0'].map((address_prefix) => ({ address_prefix, prefix_len: 8 })),
};
/** Numbers where Envoy parses one. */
const VALUES: Readonly<Record<string, string>> = {
  'grpc-timeout': '20S',
  'x-envoy-max-retries': '0',
  'x-envoy-upstream-rq-per-try-timeout-ms': '15000',
  'x-envoy-upstream-rq-timeout-ms': '15000',
  'x-envoy-upstream-stream-duration-ms': '30000',
};
const line = (name: string) => `${name}: ${VALUES[name] ?? 'said'}`;

/** Controls the router, which does not forward it. */
const ROUTER_CONTROLS = [
  'x-envoy-hedge-on-per-try-timeout',
  'x-envoy-max-retries',
  'x-envoy-retriable-header-names',
  'x-envoy-retriable-status-codes',
  'x-envoy-retry-grpc-on',
  'x-envoy-retry-on',
  'x-envoy-upstream-alt-stat-name',
  'x-envoy-upstream-rq-per-try-timeout-ms',
  'x-envoy-upstream-rq-timeout-alt-response',
  'x-envoy-upstream-rq-timeout-ms',
  'x-envoy-upstream-stream-duration-ms',
];
/** Removed from every request, and from every external one. */
const NEVER = ['x-forwarded-client-cert'];
const EXTERNAL = ['x-envoy-force-trace', 'x-envoy-internal', 'x-envoy-ip-tags', 'x-envoy-original-url'];
/** Removed from external requests by an edge proxy. */
const EDGE = [
  'x-envoy-decorator-operation',
  'x-envoy-downstream-service-cluster',
  'x-envoy-downstream-service-node',
  'x-envoy-external-address',
  'x-envoy-original-host',
  'x-envoy-original-path',
  'x-request-id',
];
/** Always forwarded. */
const FORWARDED_ALWAYS = [
  'authorization',
  'cf-connecting-ip',
  'forwarded',
  'grpc-timeout',
  'proxy-authorization',
  'referer',
  'traceparent',
  'true-client-ip',
  'via',
  'x-b3-traceid',
  'x-client-ip',
  'x-client-trace-id',
  'x-envoy-attempt-count',
  'x-envoy-auth-failure-mode-allowed',
  'x-envoy-auth-headers-to-remove',
  'x-envoy-degraded',
  'x-envoy-dynamic-forward-host',
  'x-envoy-fault-abort-grpc-request',
  'x-envoy-fault-delay-request',
  'x-envoy-fault-throughput-response',
  'x-envoy-immediate-health-check-fail',
  'x-envoy-is-timeout-retry',
  'x-envoy-local-overloaded',
  'x-envoy-original-dst-host',
  'x-envoy-original-method',
  'x-envoy-original-scheme',
  'x-envoy-overloaded',
  'x-envoy-peer-metadata',
  'x-envoy-peer-metadata-id',
  'x-envoy-ratelimited',
  'x-envoy-upstream-canary',
  'x-envoy-upstream-healthchecked-cluster',
  'x-envoy-upstream-remote-address',
  'x-envoy-upstream-service-time',
  'x-forwarded',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-prefix',
  'x-forwarded-scheme',
  'x-forwarded-ssl',
  'x-original-url',
  'x-ot-span-context',
  'x-rate-limit',
  'x-real-ip',
  'x-rewrite-url',
  'x-squash-debug',
  'x-trace-id',
];
const ALL = [...ROUTER_CONTROLS, ...NEVER, ...EXTERNAL, ...EDGE, ...FORWARDED_ALWAYS];

/** Starts connection managers whose hosts echo what they received. */
async function start(t: Test, program: ProxyProgram, managers: Record<string, Config>) {
  const heads: string[] = [];
  const upstream = await startRawUpstream(t, ({ head, socket }) => {
    heads.push(head);
    socket.write(response(200));
  });
  const client = [headerOption('x-client', '%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%')];
  const routes = [routeTo({ prefix: '/' }, 'host', {}, { request_headers_to_add: client })];
  const { ports } = await startProxy(t, {
    ...program,
    listeners: Object.fromEntries(
      Object.entries(managers).map(([name, manager]) => [name, managerOf(routes, manager)]),
    ),
    clusters: [staticCluster('host', upstream.port)],
  });
  /** Sends a request with these lines, and returns the header section that the host receives. */
  return async (name: string, lines: readonly string[]): Promise<string> => {
    const connection = await connectRaw(t, ports[name]!);
    connection.write(`GET / HTTP/1.1\r\nHost: a\r\n${lines.map((each) => `${each}\r\n`).join('')}\r\n`);
    await connection.readUntil('\r\n\r\n');
    connection.destroy();
    return heads.at(-1)!;
  };
}

/** Returns the names of the fields whose value is the client's. */
function forwardedIn(head: string, names: readonly string[]): string[] {
  const lines = new Set(head.toLowerCase().split('\r\n'));
  return names.filter((name) => lines.has(line(name).toLowerCase()));
}

besideEnvoy('requests lose the headers that their clients may not send', async (t, program) => {
  const hostOf = await start(t, program, {
    behind: {},
    edge: { use_remote_address: true },
    inside: { use_remote_address: true, internal_address_config: INTERNAL },
    'behind-inside': { internal_address_config: INTERNAL },
    hops: { use_remote_address: true, internal_address_config: INTERNAL, xff_num_trusted_hops: 1 },
  });
  const passed = async (name: string, ...more: string[]) =>
    forwardedIn(await hostOf(name, [...ALL.map(line), ...more]), ALL);
  const external = [...EDGE, ...FORWARDED_ALWAYS];
  const internal = [...EXTERNAL.filter((name) => name !== 'x-envoy-internal'), ...external];
  t.same(await passed('behind'), external);
  t.same(await passed('edge'), FORWARDED_ALWAYS);
  t.same(await passed('inside'), internal);
  t.same(await passed('behind-inside'), external, 'the origin is unknown');
  t.same(await passed('behind-inside', 'x-forwarded-for: 10.1.1.1'), internal);
  t.same(await passed('behind-inside', 'x-forwarded-for: 10.1.1.1', 'x-forwarded-for:'), internal);
  t.same(await passed('behind-inside', 'x-forwarded-for: 8.8.8.8', 'x-forwarded-for: 10.1.1.1'), external);
  t.same(await passed('inside', 'x-forwarded-for: 10.1.1.1'), FORWARDED_ALWAYS, 'it may come from a proxy');
  t.same(await passed('inside', 'x-forwarded-for:'), FORWARDED_ALWAYS);
  t.same(await passed('hops', 'x-forwarded-for: 10.1.1.1'), FORWARDED_ALWAYS);
});

const FORWARDED: readonly (readonly string[])[] = [
  [],
  ['10.1.1.1'],
  ['8.8.8.8, 10.1.1.1'],
  ['8.8.8.8', '10.1.1.1'],
  ['10.1.1.1', ''],
  ['', '10.1.1.1'],
  [''],
  ['junk'],
  ['8.8.8.8,'],
  [',10.1.1.1'],
  ['10.1.1.1,,10.1.1.2'],
  ['10.1.1.1 , 9.9.9.9\t', '10.2.2.2'],
  ['10.1.1.1:80'],
  ['[::1]:80'],
  ['::ffff:10.1.1.1'],
  ['10.01.1.1'],
  ['167837953'],
];

/**
 * x-forwarded-for and x-envoy-external-address as the host receives them, the client's address, and whether the request is
 * internal.
 */
const TRUSTED: readonly (readonly [Config, readonly string[]])[] = [
  [
    {},
    [
      ' | 127.0.0.1 |  | ',
      '10.1.1.1 | 10.1.1.1 |  | internal',
      '8.8.8.8, 10.1.1.1 | 10.1.1.1 |  | ',
      '8.8.8.8,10.1.1.1 | 10.1.1.1 |  | ',
      '10.1.1.1 | 10.1.1.1 |  | internal',
      '10.1.1.1 | 10.1.1.1 |  | internal',
      ' | 127.0.0.1 |  | ',
      'junk | 127.0.0.1 |  | ',
      '8.8.8.8, | 127.0.0.1 |  | ',
      ',10.1.1.1 | 10.1.1.1 |  | ',
      '10.1.1.1,,10.1.1.2 | 10.1.1.2 |  | ',
      '10.1.1.1 , 9.9.9.9,10.2.2.2 | 10.2.2.2 |  | ',
      '10.1.1.1:80 | 127.0.0.1 |  | ',
      '[::1]:80 | 127.0.0.1 |  | ',
      '::ffff:10.1.1.1 | ::ffff:10.1.1.1 |  | ',
      '10.01.1.1 | 127.0.0.1 |  | ',
      '167837953 | 127.0.0.1 |  | ',
    ],
  ],
  [
    { xff_num_trusted_hops: 1 },
    [
      ' | 127.0.0.1 |  | ',
      '10.1.1.1 | 127.0.0.1 |  | ',
      '8.8.8.8, 10.1.1.1 | 8.8.8.8 |  | ',
      '8.8.8.8,10.1.1.1 | 8.8.8.8 |  | ',
      '10.1.1.1 | 127.0.0.1 |  | ',
      '10.1.1.1 | 127.0.0.1 |  | ',
      ' | 127.0.0.1 |  | ',
      'junk | 127.0.0.1 |  | ',
      '8.8.8.8, | 8.8.8.8 |  | ',
      ',10.1.1.1 | 127.0.0.1 |  | ',
      '10.1.1.1,,10.1.1.2 | 127.0.0.1 |  | ',
      '10.1.1.1 , 9.9.9.9,10.2.2.2 | 9.9.9.9 |  | ',
      '10.1.1.1:80 | 127.0.0.1 |  | ',
      '[::1]:80 | 127.0.0.1 |  | ',
      '::ffff:10.1.1.1 | 127.0.0.1 |  | ',
      '10.01.1.1 | 127.0.0.1 |  | ',
      '167837953 | 127.0.0.1 |  | ',
    ],
  ],
  [
    { xff_num_trusted_hops: 2 },
    [
      ' | 127.0.0.1 |  | ',
      '10.1.1.1 | 127.0.0.1 |  | ',
      '8.8.8.8, 10.1.1.1 | 127.0.0.1 |  | ',
      '8.8.8.8,10.1.1.1 | 127.0.0.1 |  | ',
      '10.1.1.1 | 127.0.0.1 |  | ',
      '10.1.1.1 | 127.0.0.1 |  | ',
      ' | 127.0.0.1 |  | ',
      'junk | 127.0.0.1 |  | ',
      '8.8.8.8, | 127.0.0.1 |  | ',
      ',10.1.1.1 | 127.0.0.1 |  | ',
      '10.1.1.1,,10.1.1.2 | 10.1.1.1 |  | ',
      '10.1.1.1 , 9.9.9.9,10.2.2.2 | 10.1.1.1 |  | ',
      '10.1.1.1:80 | 127.0.0.1 |  | ',
      '[::1]:80 | 127.0.0.1 |  | ',
      '::ffff:10.1.1.1 | 127.0.0.1 |  | ',
      '10.01.1.1 | 127.0.0.1 |  | ',
      '167837953 | 127.0.0.1 |  | ',
    ],
  ],
  [
    { use_remote_address: true },
    [
      'self | 127.0.0.1 |  | internal',
      '10.1.1.1,self | 127.0.0.1 | 127.0.0.1 | ',
      '8.8.8.8, 10.1.1.1,self | 127.0.0.1 | 127.0.0.1 | ',
      '8.8.8.8,10.1.1.1,self | 127.0.0.1 | 127.0.0.1 | ',
      '10.1.1.1,self | 127.0.0.1 | 127.0.0.1 | ',
      '10.1.1.1,self | 127.0.0.1 | 127.0.0.1 | ',
      'self | 127.0.0.1 | 127.0.0.1 | ',
      'junk,self | 127.0.0.1 | 127.0.0.1 | ',
      '8.8.8.8,,self | 127.0.0.1 | 127.0.0.1 | ',
      ',10.1.1.1,self | 127.0.0.1 | 127.0.0.1 | ',
      '10.1.1.1,,10.1.1.2,self | 127.0.0.1 | 127.0.0.1 | ',
      '10.1.1.1 , 9.9.9.9,10.2.2.2,self | 127.0.0.1 | 127.0.0.1 | ',
      '10.1.1.1:80,self | 127.0.0.1 | 127.0.0.1 | ',
      '[::1]:80,self | 127.0.0.1 | 127.0.0.1 | ',
      '::ffff:10.1.1.1,self | 127.0.0.1 | 127.0.0.1 | ',
      '10.01.1.1,self | 127.0.0.1 | 127.0.0.1 | ',
      '167837953,self | 127.0.0.1 | 127.0.0.1 | ',
    ],
  ],
  [
    { use_remote_address: true, skip_xff_append: true },
    [
      ' | 127.0.0.1 |  | internal',
      '10.1.1.1 | 127.0.0.1 | 127.0.0.1 | ',
      '8.8.8.8, 10.1.1.1 | 127.0.0.1 | 127.0.0.1 | ',
      '8.8.8.8,10.1.1.1 | 127.0.0.1 | 127.0.0.1 | ',
      '10.1.1.1 | 127.0.0.1 | 127.0.0.1 | ',
      '10.1.1.1 | 127.0.0.1 | 127.0.0.1 | ',
      ' | 127.0.0.1 | 127.0.0.1 | ',
      'junk | 127.0.0.1 | 127.0.0.1 | ',
      '8.8.8.8, | 127.0.0.1 | 127.0.0.1 | ',
      ',10.1.1.1 | 127.0.0.1 | 127.0.0.1 | ',
      '10.1.1.1,,10.1.1.2 | 127.0.0.1 | 127.0.0.1 | ',
      '10.1.1.1 , 9.9.9.9,10.2.2.2 | 127.0.0.1 | 127.0.0.1 | ',
      '10.1.1.1:80 | 127.0.0.1 | 127.0.0.1 | ',
      '[::1]:80 | 127.0.0.1 | 127.0.0.1 | ',
      '::ffff:10.1.1.1 | 127.0.0.1 | 127.0.0.1 | ',
      '10.01.1.1 | 127.0.0.1 | 127.0.0.1 | ',
      '167837953 | 127.0.0.1 | 127.0.0.1 | ',
    ],
  ],
  [
    { use_remote_address: true, xff_num_trusted_hops: 1 },
    [
      'self | 127.0.0.1 |  | internal',
      '10.1.1.1,self | 10.1.1.1 | 10.1.1.1 | ',
      '8.8.8.8, 10.1.1.1,self | 10.1.1.1 | 10.1.1.1 | ',
      '8.8.8.8,10.1.1.1,self | 10.1.1.1 | 10.1.1.1 | ',
      '10.1.1.1,self | 10.1.1.1 | 10.1.1.1 | ',
      '10.1.1.1,self | 10.1.1.1 | 10.1.1.1 | ',
      'self | 127.0.0.1 | 127.0.0.1 | ',
      'junk,self | 127.0.0.1 | 127.0.0.1 | ',
      '8.8.8.8,,self | 127.0.0.1 | 127.0.0.1 | ',
      ',10.1.1.1,self | 10.1.1.1 | 10.1.1.1 | ',
      '10.1.1.1,,10.1.1.2,self | 10.1.1.2 | 10.1.1.2 | ',
      '10.1.1.1 , 9.9.9.9,10.2.2.2,self | 10.2.2.2 | 10.2.2.2 | ',
      '10.1.1.1:80,self | 127.0.0.1 | 127.0.0.1 | ',
      '[::1]:80,self | 127.0.0.1 | 127.0.0.1 | ',
      '::ffff:10.1.1.1,self | ::ffff:10.1.1.1 | ::ffff:10.1.1.1 | ',
      '10.01.1.1,self | 127.0.0.1 | 127.0.0.1 | ',
      '167837953,self | 127.0.0.1 | 127.0.0.1 | ',
    ],
  ],
  [
    { use_remote_address: true, xff_num_trusted_hops: 1, skip_xff_append: true },
    [
      ' | 127.0.0.1 |  | internal',
      '10.1.1.1 | 10.1.1.1 | 10.1.1.1 | ',
      '8.8.8.8, 10.1.1.1 | 10.1.1.1 | 10.1.1.1 | ',
      '8.8.8.8,10.1.1.1 | 10.1.1.1 | 10.1.1.1 | ',
      '10.1.1.1 | 10.1.1.1 | 10.1.1.1 | ',
      '10.1.1.1 | 10.1.1.1 | 10.1.1.1 | ',
      ' | 127.0.0.1 | 127.0.0.1 | ',
      'junk | 127.0.0.1 | 127.0.0.1 | ',
      '8.8.8.8, | 127.0.0.1 | 127.0.0.1 | ',
      ',10.1.1.1 | 10.1.1.1 | 10.1.1.1 | ',
      '10.1.1.1,,10.1.1.2 | 10.1.1.2 | 10.1.1.2 | ',
      '10.1.1.1 , 9.9.9.9,10.2.2.2 | 10.2.2.2 | 10.2.2.2 | ',
      '10.1.1.1:80 | 127.0.0.1 | 127.0.0.1 | ',
      '[::1]:80 | 127.0.0.1 | 127.0.0.1 | ',
      '::ffff:10.1.1.1 | ::ffff:10.1.1.1 | ::ffff:10.1.1.1 | ',
      '10.01.1.1 | 127.0.0.1 | 127.0.0.1 | ',
      '167837953 | 127.0.0.1 | 127.0.0.1 | ',
    ],
  ],
  [
    { use_remote_address: true, xff_num_trusted_hops: 2 },
    [
      'self | 127.0.0.1 |  | internal',
      '10.1.1.1,self | 127.0.0.1 | 127.0.0.1 | ',
      '8.8.8.8, 10.1.1.1,self | 8.8.8.8 | 8.8.8.8 | ',
      '8.8.8.8,10.1.1.1,self | 8.8.8.8 | 8.8.8.8 | ',
      '10.1.1.1,self | 127.0.0.1 | 127.0.0.1 | ',
      '10.1.1.1,self | 127.0.0.1 | 127.0.0.1 | ',
      'self | 127.0.0.1 | 127.0.0.1 | ',
      'junk,self | 127.0.0.1 | 127.0.0.1 | ',
      '8.8.8.8,,self | 8.8.8.8 | 8.8.8.8 | ',
      ',10.1.1.1,self | 127.0.0.1 | 127.0.0.1 | ',
      '10.1.1.1,,10.1.1.2,self | 127.0.0.1 | 127.0.0.1 | ',
      '10.1.1.1 , 9.9.9.9,10.2.2.2,self | 9.9.9.9 | 9.9.9.9 | ',
      '10.1.1.1:80,self | 127.0.0.1 | 127.0.0.1 | ',
      '[::1]:80,self | 127.0.0.1 | 127.0.0.1 | ',
      '::ffff:10.1.1.1,self | 127.0.0.1 | 127.0.0.1 | ',
      '10.01.1.1,self | 127.0.0.1 | 127.0.0.1 | ',
      '167837953,self | 127.0.0.1 | 127.0.0.1 | ',
    ],
  ],
];

besideEnvoy('x-forwarded-for is interpreted as in Envoy, on any number of lines', async (t, program) => {
  const managers = TRUSTED.map(([config]) => ({ internal_address_config: INTERNAL, ...config }));
  const hostOf = await start(t, program, Object.fromEntries(managers.map((each, index) => [`manager-${index}`, each])));
  for (const [index, [config, expected]] of TRUSTED.entries()) {
    const found: string[] = [];
    for (const values of FORWARDED) {
      const head = await hostOf(
        `manager-${index}`,
        values.map((value) => `x-forwarded-for: ${value}`),
      );
      const field = (name: string) =>
        [...head.matchAll(new RegExp(`^${name}: ?(.*?)\\r?$`, 'gim'))].map((each) => each[1]!.trim());
      let forwarded = field('x-forwarded-for')
        .filter((each) => each !== '')
        .join(',');
      // The address of the machine, which represents a client on it.
      if (config['use_remote_address'] && !config['skip_xff_append']) forwarded = forwarded.replace(/[^,]*$/, 'self');
      const isInternal = field('x-envoy-internal').length > 0;
      found.push(
        [forwarded, field('x-client'), field('x-envoy-external-address'), isInternal ? 'internal' : ''].join(' | '),
      );
    }
    t.same(found, expected, JSON.stringify(config));
  }
});

besideEnvoy('responses reach clients with the headers that their hosts set', async (t, program) => {
  // The router writes this one.
  const names = ALL.filter((name) => name !== 'x-envoy-upstream-service-time');
  const upstream = await startRawUpstream(t, ({ socket }) => {
    socket.write(response(200).replace('\r\n', `\r\n${ALL.map((name) => `${line(name)}\r\n`).join('')}`));
  });
  const routes = [routeTo({ prefix: '/' }, 'host')];
  const { ports } = await startProxy(t, {
    ...program,
    listeners: {
      behind: managerOf(routes),
      edge: managerOf(routes, { use_remote_address: true }),
      inside: managerOf(routes, { use_remote_address: true, internal_address_config: INTERNAL }),
    },
    clusters: [staticCluster('host', upstream.port)],
  });
  for (const [name, port] of Object.entries(ports)) {
    const connection = await connectRaw(t, port);
    connection.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    const head = await connection.readUntil('\r\n\r\n');
    t.same(forwardedIn(head, names), names, name);
    t.match(head, /^x-envoy-upstream-service-time: [0-9]+\r$/im);
  }
});
