// The DNS filter: answers, invalid queries, name servers, stats and logs. The expected results are those of Envoy 1.40.

import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { besideEnvoy, type ProxyProgram } from '../harness/envoy.js';
import {
  bootstrap,
  type Config,
  fileAccessLog,
  startBaton,
  staticCluster,
  type Teardown,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { UdpClient, udpListener } from './peers.js';

const DNS = 'type.googleapis.com/envoy.extensions.filters.udp.dns_filter.v3.DnsFilterConfig';
const CARES = 'type.googleapis.com/envoy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig';
const FORMAT = '%QUERY_NAME% %QUERY_TYPE% %QUERY_CLASS% %ANSWER_COUNT% %RESPONSE_CODE% %PARSE_STATUS%\n';

const addresses = (...address: string[]): Config => ({ address_list: { address } });
const MANY = Array.from({ length: 20 }, (_, index) => `10.1.0.${index + 1}`);

const DOMAINS: Config[] = [
  { name: 'www.one.com', endpoint: addresses('10.0.0.1', '2001:db8::1'), answer_ttl: '60s' },
  { name: '*.wild.com', endpoint: addresses('1.1.1.1') },
  { name: '*.a.wild.com', endpoint: addresses('2.2.2.2') },
  { name: 'sole.one.com', endpoint: addresses('5.5.5.5') },
  { name: 'twice.one.com', endpoint: addresses('3.3.3.3') },
  { name: 'twice.one.com', endpoint: addresses('4.4.4.4') },
  { name: 'many.one.com', endpoint: addresses(...MANY) },
  { name: 'cluster.one.com', endpoint: { cluster_name: 'up' } },
  {
    name: 'voip.one.com',
    endpoint: {
      service_list: {
        services: [
          {
            service_name: 'sip',
            protocol: { name: 'tcp' },
            ttl: '86400s',
            targets: [
              { host_name: 'sole.one.com', port: 5061, priority: 10, weight: 20 },
              { host_name: 'unknown.org', port: 1 },
            ],
          },
          { service_name: 'x', protocol: { number: 17 }, ttl: '5s', targets: [{ cluster_name: 'up', port: 99 }] },
        ],
      },
    },
  },
];

function dnsFilter(config: Config): Config {
  return { name: 'envoy.filters.udp.dns_filter', typed_config: { '@type': DNS, stat_prefix: 'foo', ...config } };
}

async function start(t: Teardown, program: ProxyProgram, config: Config) {
  const baton = await startBaton(t, {
    ...program,
    args: ['--concurrency', '1', '--file-flush-interval-msec', '20'],
    config: bootstrap({ listeners: [udpListener('dns', [dnsFilter(config)])], clusters: [staticCluster('up', 7777)] }),
  });
  const client = await UdpClient.connect(t, await baton.listenerPort('dns'));
  const ask = async (query: Buffer) => (await client.askBytes(query)).toString('hex');
  return { baton, client, ask };
}

interface QueryParts {
  readonly type?: number;
  readonly flags?: number;
  readonly klass?: number;
  /** QDCOUNT to ARCOUNT. */
  readonly counts?: readonly number[];
  readonly rest?: string;
}

function head(flags: number, counts: readonly number[]): Buffer {
  const bytes = Buffer.alloc(12);
  [7, flags, ...counts].forEach((word, index) => void bytes.writeUInt16BE(word, index * 2));
  return bytes;
}

function nameBytes(name: string): Buffer {
  const labels = name.split('.').filter((label) => label !== '');
  return Buffer.concat([
    ...labels.flatMap((label) => [Buffer.from([label.length]), Buffer.from(label)]),
    Buffer.from([0]),
  ]);
}

function question(name: string, type: number, klass = 1): Buffer {
  return Buffer.concat([nameBytes(name), Buffer.from([type >> 8, type & 255, klass >> 8, klass & 255])]);
}

function query(
  name: string,
  { counts = [1, 0, 0, 0], flags = 0x100, klass = 1, rest = '', type = 1 }: QueryParts = {},
): Buffer {
  return Buffer.concat([head(flags, counts), question(name, type, klass), Buffer.from(rest, 'hex')]);
}

function record(name: string, type: number, ttl: number, data: Buffer): Buffer {
  const fixed = Buffer.alloc(6);
  fixed.writeUInt32BE(ttl, 0);
  fixed.writeUInt16BE(data.length, 4);
  return Buffer.concat([question(name, type), fixed, data]);
}

function response(flags: number, name: string, type: number, answers: Buffer[], more: Buffer[] = []): string {
  const counts = [1, answers.length, 0, more.length];
  return Buffer.concat([head(flags, counts), question(name, type), ...answers, ...more]).toString('hex');
}

const ip = (text: string): Buffer => Buffer.from(text.split('.').map(Number));
const IP6 = Buffer.from('20010db8000000000000000000000001', 'hex');
const ONE = ['10.0.0.1'].map((each) => record('www.one.com', 1, 60, ip(each)));
const FOUND = response(0x8100, 'www.one.com', 1, ONE);
const REFUSED = head(0x8101, [0, 0, 0, 0]).toString('hex');

function srv(priority: number, weight: number, port: number, target: string): Buffer {
  const numbers = Buffer.alloc(6);
  [priority, weight, port].forEach((word, index) => void numbers.writeUInt16BE(word, index * 2));
  return Buffer.concat([numbers, nameBytes(target)]);
}

besideEnvoy('queries for names in the table are answered, counted and logged', async (t, program) => {
  const logs = join(tempDir(t), 'dns');
  const { ask, baton, client } = await start(t, program, {
    server_config: { inline_dns_table: { virtual_domains: DOMAINS } },
    access_log: [fileAccessLog(logs, FORMAT)],
  });
  t.equal(await ask(query('www.one.com')), FOUND);
  t.equal(
    await ask(query('www.one.com', { type: 28 })),
    response(0x8100, 'www.one.com', 28, [record('www.one.com', 28, 60, IP6)]),
  );
  for (const [name, address] of [
    ['x.wild.com', '1.1.1.1'],
    ['x.y.wild.com', '1.1.1.1'],
    ['x.a.wild.com', '2.2.2.2'],
    ['cluster.one.com', '127.0.0.1'],
  ] as const) {
    t.equal(await ask(query(name)), response(0x8100, name, 1, [record(name, 1, 300, ip(address))]));
  }
  const twice = ['3.3.3.3', '4.4.4.4'].map((each) => record('twice.one.com', 1, 300, ip(each)));
  // In any order.
  const orders = [twice, twice.toReversed()].map((each) => response(0x8100, 'twice.one.com', 1, each));
  t.ok(orders.includes(await ask(query('twice.one.com'))));
  const many = await client.askBytes(query('many.one.com'));
  t.equal(many.readUInt16BE(6), 8);

  const service = '_sip._tcp.voip.one.com';
  t.equal(
    await ask(query(service, { type: 33 })),
    response(
      0x8100,
      service,
      33,
      [record(service, 33, 86400, srv(10, 20, 5061, 'sole.one.com'))],
      [record('sole.one.com', 1, 300, ip('5.5.5.5'))],
    ),
  );
  const ofCluster = '_x._udp.voip.one.com';
  t.equal(
    await ask(query(ofCluster, { type: 33 })),
    response(
      0x8100,
      ofCluster,
      33,
      [record(ofCluster, 33, 5, srv(0, 0, 99, 'up'))],
      [record('up', 1, 300, ip('127.0.0.1'))],
    ),
  );
  await baton.waitForStats({
    'dns_filter.foo.downstream_rx_queries': 10,
    'dns_filter.foo.downstream_tx_responses': 10,
    'dns_filter.foo.known_domain_queries': 10,
    'dns_filter.foo.a_record_queries': 7,
    'dns_filter.foo.aaaa_record_queries': 1,
    'dns_filter.foo.srv_record_queries': 2,
    'dns_filter.foo.local_a_record_answers': 1 + 3 + 2 + 20 + 1,
    'dns_filter.foo.local_aaaa_record_answers': 1,
    'dns_filter.foo.local_srv_record_answers': 1,
    'dns_filter.foo.cluster_a_record_answers': 2,
    'dns_filter.foo.cluster_srv_record_answers': 1,
    'dns_filter.foo.unanswered_queries': 0,
  });

  for (const [name, type] of [
    ['www.one.com', 15],
    ['www.one.com', 255],
  ] as const) {
    t.equal(await ask(query(name, { type })), response(0x8104, name, type, []));
  }
  for (const [name, type] of [
    ['x.wild.com', 28],
    ['wild.com', 1],
    ['WWW.one.com', 1],
    ['nope.org', 1],
    ['localhost', 1],
    ['voip.one.com', 1],
    ['_y._udp.voip.one.com', 33],
  ] as const) {
    t.equal(await ask(query(name, { type })), response(0x8103, name, type, []));
  }
  await baton.waitForStats({
    'dns_filter.foo.unanswered_queries': 9,
    'dns_filter.foo.unsupported_queries': 2,
    'dns_filter.foo.known_domain_queries': 17,
  });
  client.send(Buffer.from('abc'));
  const lines = () => readFileSync(logs, 'utf8').split('\n').slice(0, -1);
  await waitFor(() => lines().length === 20);
  t.equal(lines()[0], 'www.one.com 1 1 1 0 true');
  t.equal(lines()[7], 'many.one.com 1 1 20 0 true');
  t.equal(lines()[10], 'www.one.com 15 1 0 4 true');
  t.equal(lines()[19], '- - - 0 1 false');
});

besideEnvoy(
  'messages that are not queries are refused, and optional parts of a query are ignored',
  async (t, program) => {
    const { ask, baton } = await start(t, program, {
      server_config: { inline_dns_table: { virtual_domains: DOMAINS } },
    });
    const opt = '0000291000000000000000';
    for (const parts of [
      { flags: 0x120 },
      { flags: 0x300 },
      { flags: 0x500 },
      { flags: 0x103 },
      { flags: 0x180 },
      { counts: [1, 0, 0, 1], rest: opt },
      { rest: '78797a' },
    ]) {
      t.equal(await ask(query('www.one.com', parts)), FOUND);
    }
    t.equal(await ask(query('www.one.com', { flags: 0 })), response(0x8000, 'www.one.com', 1, ONE));
    t.equal(await ask(query('www.one.com', { flags: 0x900 })), response(0x8900, 'www.one.com', 1, ONE));
    await baton.waitForStats({
      'dns_filter.foo.queries_with_additional_rrs': 1,
      'dns_filter.foo.downstream_rx_invalid_queries': 0,
    });

    const mistakes: [stat: string, Buffer[]][] = [
      [
        'queries_with_ans_or_authority_rrs',
        [query('www.one.com', { counts: [1, 1, 0, 0] }), query('www.one.com', { counts: [1, 0, 1, 0] })],
      ],
      [
        'query_parsing_failure',
        [
          query('www.one.com', { klass: 3 }),
          query('www.one.com').subarray(0, -3),
          Buffer.concat([head(0x100, [1, 0, 0, 0]), Buffer.from('c00c00010001', 'hex')]),
          Buffer.concat([
            head(0x100, [1, 0, 0, 0]),
            Buffer.from([64]),
            Buffer.alloc(64, 97),
            Buffer.from('0000010001', 'hex'),
          ]),
          query(''),
        ],
      ],
      ['downstream_rx_invalid_queries', [query('www.one.com', { counts: [2, 0, 0, 0] })]],
    ];
    let invalid = 0;
    for (const [stat, queries] of mistakes) {
      for (const each of queries) t.equal(await ask(each), REFUSED);
      invalid += queries.length;
      await baton.waitForStats({
        [`dns_filter.foo.${stat}`]: stat.startsWith('downstream') ? invalid : queries.length,
        'dns_filter.foo.downstream_rx_invalid_queries': invalid,
      });
    }
    for (const short of ['', 'abc']) {
      const expected = Buffer.concat([
        Buffer.from(`${short}\0\0`).subarray(0, 2),
        Buffer.from('80010000000000000000', 'hex'),
      ]);
      t.equal(await ask(Buffer.from(short)), expected.toString('hex'));
    }
    await baton.waitForStats({ 'dns_filter.foo.query_buffer_underflow': 2 });
  },
);

t.test('responses are counted and logged, but never answered', async (t) => {
  const logs = join(tempDir(t), 'dns');
  const { ask, baton, client } = await start(
    t,
    { command: undefined },
    {
      server_config: { inline_dns_table: { virtual_domains: DOMAINS } },
      access_log: [fileAccessLog(logs, FORMAT)],
    },
  );
  // Envoy answers responses: two servers would answer each other forever.
  client.send(query('www.one.com', { flags: 0x8100 }));
  client.send(Buffer.from(REFUSED, 'hex'));
  t.equal(await ask(query('www.one.com')), FOUND);
  await baton.waitForStats({
    'dns_filter.foo.downstream_rx_queries': 3,
    'dns_filter.foo.downstream_tx_responses': 1,
    'dns_filter.foo.downstream_rx_invalid_queries': 2,
    'dns_filter.foo.queries_with_ans_or_authority_rrs': 2,
  });
  await ask(query('a\nb \\.\x7fone.com'));
  const lines = () => readFileSync(logs, 'utf8').split('\n').slice(0, -1);
  await waitFor(() => lines().length === 4);
  t.strictSame(lines(), [
    '- - - 0 1 false',
    '- - - 0 1 false',
    'www.one.com 1 1 1 0 true',
    'a\\010b\\032\\092.\\127one.com 1 1 0 3 true',
  ]);
});

besideEnvoy('other names are resolved by name servers', async (t, program) => {
  const server = createSocket('udp4');
  const asked: string[] = [];
  server.on('message', (message, { address, port }) => {
    const end = message.indexOf(0, 12) + 5;
    const name = message.subarray(13, end - 5).toString('latin1');
    const type = message.readUInt16BE(end - 4);
    asked.push(`${name.split(/[^a-z]/)[0]} ${type}`);
    if (name.startsWith('never')) return;
    const data = type === 1 ? ['09090901'] : ['20010db8000000000000000000000001'];
    const answers = name.startsWith('none') ? [] : data;
    const counts = Buffer.alloc(8);
    counts.writeUInt16BE(1, 0);
    counts.writeUInt16BE(answers.length, 2);
    const records = answers.map((each) =>
      Buffer.from(
        `c00c00${type === 1 ? '01' : '1c'}00010000004d${(each.length / 2).toString(16).padStart(4, '0')}${each}`,
        'hex',
      ),
    );
    const code = answers.length === 0 ? '8183' : '8180';
    server.send(
      Buffer.concat([message.subarray(0, 2), Buffer.from(code, 'hex'), counts, message.subarray(12, end), ...records]),
      port,
      address,
    );
  });
  server.bind(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const resolvers = [{ socket_address: { address: '127.0.0.1', port_value: server.address().port } }];
  // Envoy's logs of queries have no %DURATION%.
  const logs = program.command === undefined ? join(tempDir(t), 'dns') : undefined;
  const { ask, baton } = await start(t, program, {
    ...(logs && { access_log: [fileAccessLog(logs, '%QUERY_NAME% %DURATION%\n')] }),
    server_config: { inline_dns_table: { virtual_domains: DOMAINS } },
    client_config: {
      resolver_timeout: '1s',
      max_pending_lookups: 10,
      typed_dns_resolver_config: {
        name: 'envoy.network.dns_resolver.cares',
        typed_config: { '@type': CARES, resolvers, dns_resolver_options: { no_default_search_domain: true } },
      },
    },
  });
  t.equal(await ask(query('www.one.com')), response(0x8180, 'www.one.com', 1, ONE));
  for (const name of ['a.ext.org', 'other.one.com']) {
    const answers = ['9.9.9.1'].map((each) => record(name, 1, 300, ip(each)));
    t.equal(await ask(query(name)), response(0x8180, name, 1, answers));
  }
  t.equal(
    await ask(query('a.ext.org', { type: 28 })),
    response(0x8180, 'a.ext.org', 28, [record('a.ext.org', 28, 300, IP6)]),
  );
  t.equal(
    await ask(query('cluster.one.com', { type: 28 })),
    response(0x8180, 'cluster.one.com', 28, [record('cluster.one.com', 28, 300, IP6)]),
  );
  t.equal(await ask(query('x.wild.com', { type: 28 })), response(0x8183, 'x.wild.com', 28, []));
  t.equal(await ask(query('_s._tcp.ext.org', { type: 33 })), response(0x8183, '_s._tcp.ext.org', 33, []));
  t.equal(await ask(query('a.ext.org', { type: 15 })), response(0x8184, 'a.ext.org', 15, []));
  t.equal(await ask(query('none.ext.org')), response(0x8183, 'none.ext.org', 1, []));
  t.equal(await ask(query('never.ext.org')), response(0x8183, 'never.ext.org', 1, []));
  await baton.waitForStats({
    'dns_filter.foo.externally_resolved_queries': 8,
    'dns_filter.foo.external_unsupported_queries': 2,
    'dns_filter.foo.external_a_record_answers': 2,
    'dns_filter.foo.external_aaaa_record_queries': 2,
    'dns_filter.foo.external_aaaa_record_answers': 2,
    'dns_filter.foo.unanswered_queries': 5,
  });
  t.ok(asked.includes('never 1'));
  if (logs === undefined) return;
  // Names that are addresses.
  const literal = [record('10.0.0.9', 1, 300, ip('10.0.0.9'))];
  t.equal(await ask(query('10.0.0.9')), response(0x8180, '10.0.0.9', 1, literal));
  t.equal(await ask(query('10.0.0.9', { type: 28 })), response(0x8183, '10.0.0.9', 28, []));
  const times = () => readFileSync(logs, 'utf8').split('\n');
  await waitFor(() => times().some((line) => line.startsWith('never')));
  const [, waited] = times()
    .find((line) => line.startsWith('never'))!
    .split(' ');
  t.ok(Number(waited) >= 900, `it was waited for: ${waited} ms`);
});

besideEnvoy('a table is read from a file; without one no name is known', async (t, program) => {
  const file = join(tempDir(t), 'table.json');
  writeFileSync(file, JSON.stringify({ virtual_domains: DOMAINS }));
  const { ask } = await start(t, program, {
    case_insensitive: true,
    server_config: { external_dns_table: { filename: file } },
  });
  const shouted = ['10.0.0.1'].map((each) => record('WWW.one.com', 1, 60, ip(each)));
  t.equal(await ask(query('WWW.one.com')), response(0x8100, 'WWW.one.com', 1, shouted));
  const none = await start(t, program, { server_config: { external_dns_table: { filename: `${file}.none` } } });
  t.equal(await none.ask(query('www.one.com')), response(0x8103, 'www.one.com', 1, []));
});
