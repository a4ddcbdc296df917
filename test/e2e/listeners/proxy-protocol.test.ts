// envoy.filters.listener.proxy_protocol: the client's address is the one that the proxy in front reports, and other clients are
// refused.

import { spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { addressesOf, binaryHeader } from '../../extensions/filters/listener/proxy-protocol/binary-header.js';
import {
  bootstrap,
  type Config,
  connectRaw,
  type EchoedRequest,
  EpochLine,
  endsWithTest,
  fileAccessLog,
  findPeer,
  freePort,
  httpListener,
  httpRequest,
  rawExchange,
  routeAllTo,
  startBaton,
  startEchoUpstream,
  startTcpUpstream,
  staticCluster,
  tcpListener,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { answering, managerOf } from '../http/proxy.js';

const MESSAGE = 'type.googleapis.com/envoy.extensions.filters.listener.proxy_protocol.v3.ProxyProtocol';
const LINE = 'PROXY TCP4 192.0.2.1 198.51.100.2 4000 443\r\n';
const BINARY = binaryHeader(0x21, 0x21, addressesOf('2001:db8::1', '2001:db8::2', 4000, 443));
const GET = 'GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n';

/** Returns the listener with the filter before its filter chains. */
function behindProxies(listener: Config, filter: Config = {}, more: Config = {}): Config {
  const typed_config = { '@type': MESSAGE, stat_prefix: listener['name'], ...filter };
  return { ...listener, listener_filters: [{ name: 'proxies', typed_config }], stat_prefix: listener['name'], ...more };
}

const directory = tempDir(t);
const logFile = join(directory, 'access.log');
const log = fileAccessLog(
  logFile,
  '%DOWNSTREAM_REMOTE_ADDRESS% %DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT% %DOWNSTREAM_LOCAL_ADDRESS% ' +
    '%DOWNSTREAM_DIRECT_LOCAL_ADDRESS%\n',
);
const lines = () => (existsSync(logFile) ? readFileSync(logFile, 'latin1').split('\n').slice(0, -1) : []);
const echo = await startEchoUpstream(t);
const bytes = await startTcpUpstream(t, (socket) => {
  socket.write('welcome ');
  socket.pipe(socket);
});
const web = (name: string, more: Config = {}) =>
  httpListener(name, 0, { route_config: routeAllTo('echo'), use_remote_address: true, ...more });
const named = (text: string, match?: Config): Config => {
  const [chain] = httpListener('chains', 0, managerOf([answering({ prefix: '/' }, text)]))['filter_chains'] as Config[];
  return { ...chain, name: text, ...(match && { filter_chain_match: match }) };
};
const range = (address_prefix: string, prefix_len: number) => ({ address_prefix, prefix_len });

const FLUSHED_SOON = ['--file-flush-interval-msec', '20'];
const baton = await startBaton(t, {
  args: ['-l', 'warning', '--concurrency', '2', ...FLUSHED_SOON],
  config: bootstrap({
    listeners: [
      web('plain'),
      behindProxies(web('web', { access_log: [log] })),
      behindProxies(web('optional'), { allow_requests_without_proxy_protocol: true, disallowed_versions: ['V2'] }),
      behindProxies(web('strict'), { disallowed_versions: ['V1'] }),
      behindProxies(tcpListener('tcp', 0, { cluster: 'bytes' })),
      behindProxies(web('hasty'), {}, { listener_filters_timeout: '0.05s' }),
      behindProxies(
        tcpListener('patient', 0, { cluster: 'bytes' }),
        { allow_requests_without_proxy_protocol: true },
        { listener_filters_timeout: '0.05s', continue_on_listener_filters_timeout: true },
      ),
      {
        ...behindProxies(web('chains')),
        filter_chains: [
          named('port', { destination_port: 443 }),
          named('client', { source_prefix_ranges: [range('203.0.113.0', 24)] }),
          named('peer', { direct_source_prefix_ranges: [range('127.0.0.2', 32)] }),
          named('here', { source_type: 'SAME_IP_OR_LOOPBACK' }),
        ],
      },
      {
        ...behindProxies(web('limited'), { stat_prefix: '' }),
        filter_chains: [named('only', { destination_port: 443 })],
      },
    ],
    clusters: [staticCluster('echo', echo.port), staticCluster('bytes', bytes.port)],
    extra: {
      layered_runtime: {
        layers: [{ name: 'limits', static_layer: { 'envoy.resource_limits.listener.limited.connection_limit': 1 } }],
      },
    },
  }),
});
const port = (name: string) => baton.listenerPort(name);
const stat = (name: string) => baton.stat(name);

async function forwardedFor(name: string, pieces: readonly (string | Uint8Array)[]): Promise<unknown> {
  const { text } = await rawExchange(await port(name), pieces);
  const body = text.slice(text.indexOf('\r\n\r\n') + 4);
  return text.startsWith('HTTP/1.1 200') ? (JSON.parse(body) as EchoedRequest).headers['x-forwarded-for'] : text;
}

/** The result for a client on this machine, without a proxy. */
const own = await forwardedFor('plain', [GET]);

t.test('hosts and logs see the client address from the header, in both versions', async (t) => {
  t.equal(await forwardedFor('web', [LINE + GET]), '192.0.2.1');
  t.equal(await forwardedFor('web', [Buffer.concat([BINARY, Buffer.from(GET)])]), '2001:db8::1');
  await waitFor(() => lines().length === 2, { what: 'two lines' });
  const itself = `127.0.0.1:${await port('web')}`;
  t.same(lines(), [
    `192.0.2.1:4000 127.0.0.1 198.51.100.2:443 ${itself}`,
    `[2001:db8::1]:4000 127.0.0.1 [2001:db8::2]:443 ${itself}`,
  ]);
  t.same([await stat('proxy_proto.web.versions.v1.found'), await stat('proxy_proto.web.versions.v2.found')], [1, 1]);
});

t.test('a header split into pieces is parsed', async (t) => {
  for (const header of [Buffer.from(LINE), BINARY]) {
    const connection = await connectRaw(t, await port('web'));
    for (const byte of header) {
      connection.write(Buffer.from([byte]));
      await new Promise((resolve) => setImmediate(resolve));
    }
    connection.write(GET);
    t.match((await connection.readToEnd()).text, header === BINARY ? '"2001:db8::1"' : '"192.0.2.1"');
  }
});

t.test('TLVs are removed with the addresses, however long they are', async (t) => {
  const extension = Buffer.alloc(3 + 20_000, 4);
  extension.writeUInt16BE(20_000, 1);
  const more = Buffer.concat([addressesOf('203.0.113.7', '198.51.100.2', 4000, 443), extension]);
  t.equal(
    await forwardedFor('web', [Buffer.concat([binaryHeader(0x21, 0x11, more), Buffer.from(GET)])]),
    '203.0.113.7',
  );
});

t.test('with UNKNOWN or LOCAL the proxy itself is the client', async (t) => {
  t.equal(await forwardedFor('web', ['PROXY UNKNOWN\r\n', GET]), own);
  t.equal(await forwardedFor('web', [binaryHeader(0x20, 0, Buffer.alloc(5)), GET]), own);
});

t.test('connections without a header, or with an invalid one, are closed and counted', async (t) => {
  await baton.waitForStat('listener.web.downstream_cx_active', 0);
  const total = await stat('listener.web.downstream_cx_total');
  for (const [first, counter] of [
    [GET, 'not_found_disallowed'],
    ['PROXY TCP4 here there 1 2\r\n', 'versions.v1.error'],
    [binaryHeader(0x21, 0x31, Buffer.alloc(216)), 'versions.v2.error'],
  ] as const) {
    t.equal((await rawExchange(await port('web'), first)).text, '');
    await baton.waitForStat(`proxy_proto.web.${counter}`, 1);
  }
  t.equal(await stat('downstream_cx_proxy_proto_error'), 3);
  t.equal(await stat('listener.web.downstream_cx_total'), total, 'not counted as a connection');
  t.equal(await stat('listener.web.downstream_pre_cx_active'), 0);
});

t.test('a peer that disconnects in the middle of its header is counted', async (t) => {
  const ends = await connectRaw(t, await port('web'));
  ends.write('PROXY TCP4 19');
  ends.end();
  await ends.readToEnd();
  await baton.waitForStat('listener.web.downstream_listener_filter_remote_close', 1);
  const breaks = await connectRaw(t, await port('web'));
  breaks.write('PROXY TCP4 19');
  await baton.waitForStat('listener.web.downstream_pre_cx_active', 1);
  breaks.reset();
  await baton.waitForStat('listener.web.downstream_listener_filter_error', 1);
  await baton.waitForStat('listener.web.downstream_pre_cx_active', 0);
});

t.test('where the header is optional, other connections are served unchanged', async (t) => {
  t.equal(await forwardedFor('optional', [LINE + GET]), '192.0.2.1');
  t.equal(await forwardedFor('optional', [GET]), own);
  t.equal(await forwardedFor('optional', ['G', GET.slice(1)]), own);
  // The start of a header that turns out to be none: method and path, in two pieces.
  const { text } = await rawExchange(await port('optional'), [
    'PRO',
    'PFIND / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n',
  ]);
  t.match(text, '"method":"PROPFIND"');
  // A disallowed version.
  t.match((await rawExchange(await port('optional'), [BINARY, GET])).text, 'HTTP/1.1 400');
  t.same(
    [await stat('proxy_proto.optional.not_found_allowed'), await stat('proxy_proto.optional.versions.v1.found')],
    [4, 1],
  );
});

t.test('a disallowed version is closed', async (t) => {
  t.equal((await rawExchange(await port('strict'), LINE + GET)).text, '');
  t.equal(await forwardedFor('strict', [BINARY, GET]), '2001:db8::1');
  t.same(
    [
      await stat('proxy_proto.strict.versions.v1.found'),
      await stat('proxy_proto.strict.versions.v1.disallowed'),
      await stat('proxy_proto.strict.versions.v2.found'),
    ],
    [1, 1, 1],
  );
});

t.test('bytes after the header reach a host that is still being connected to', async (t) => {
  const payload = 'p'.repeat(300_000);
  const connection = await connectRaw(t, await port('tcp'));
  connection.write(LINE + payload);
  connection.end();
  t.equal((await connection.readToEnd()).text, `welcome ${payload}`);
});

t.test('a connection without a complete header is closed after the timeout, or served without a header', async (t) => {
  const silent = await connectRaw(t, await port('hasty'));
  silent.write('PROXY');
  t.equal((await silent.readToEnd()).text, '');
  t.equal(await stat('listener.hasty.downstream_pre_cx_timeout'), 1);
  const listening = await connectRaw(t, await port('patient'));
  t.equal(await listening.read(8), 'welcome ');
  listening.write('PROXY');
  t.equal(await listening.read(5), 'PROXY');
  const hesitating = await connectRaw(t, await port('patient'));
  hesitating.write('PRO');
  t.equal(await hesitating.read(11), 'welcome PRO', 'the bytes that it sent are not lost');
  t.equal(await stat('listener.patient.downstream_pre_cx_timeout'), 2);
});

t.test('the filter chain is selected by the addresses in the header', async (t) => {
  const chainOf = async (header: string, host?: string) => {
    const { text } = await rawExchange(await port('chains'), header + GET, host === undefined ? {} : { host });
    return text.slice(text.indexOf('\r\n\r\n') + 4);
  };
  t.equal(await chainOf(LINE), 'port');
  t.equal(await chainOf('PROXY TCP4 203.0.113.9 198.51.100.2 4000 80\r\n'), 'client');
  t.equal(await chainOf('PROXY TCP4 127.0.0.1 198.51.100.2 4000 80\r\n'), 'here');
  t.equal(await chainOf('PROXY UNKNOWN\r\n'), 'here');
  t.equal(await chainOf('PROXY TCP4 192.0.2.7 198.51.100.2 4000 80\r\n'), '', 'no chain matches');
  t.equal(await stat('listener.chains.no_filter_chain_match'), 1);
});

t.test('a connection whose header is incomplete counts as active until it ends, in whatever way', async (t) => {
  const overflow = 'listener.limited.downstream_cx_overflow';
  const served = async () => {
    const { text } = await rawExchange(await port('limited'), LINE + GET);
    await baton.waitForStat('listener.limited.downstream_cx_active', 0);
    return text.endsWith('only');
  };
  const waiting = await connectRaw(t, await port('limited'));
  await baton.waitForStat('listener.limited.downstream_pre_cx_active', 1);
  t.notOk(await served(), 'the connection limit is used up');
  await baton.waitForStat(overflow, 1);
  waiting.end();
  await waiting.readToEnd();
  t.ok(await served());
  t.equal((await rawExchange(await port('limited'), GET)).text, '', 'no proxy');
  t.ok(await served());
  t.equal((await rawExchange(await port('limited'), 'PROXY TCP4 192.0.2.1 198.51.100.2 4000 80\r\n')).text, '');
  await baton.waitForStat('listener.limited.no_filter_chain_match', 1);
  t.ok(await served());
  t.equal(await stat(overflow), 1);
  t.same([await stat('proxy_proto.versions.v1.found'), await stat('proxy_proto.not_found_disallowed')], [4, 1]);
});

const haproxy = findPeer('haproxy');
for (const [option, version] of [
  ['send-proxy', 'v1'],
  ['send-proxy-v2', 'v2'],
] as const) {
  t.test(`HAProxy in front, with ${option}`, haproxy.path === undefined ? haproxy : {}, async (t) => {
    const before = (await stat(`proxy_proto.web.versions.${version}.found`))!;
    const door = await freePort();
    const config = join(tempDir(t), 'haproxy.cfg');
    writeFileSync(
      config,
      `defaults
  mode tcp
  timeout connect 5s
  timeout client 10s
  timeout server 10s
listen door
  bind 127.0.0.1:${door}
  server baton 127.0.0.1:${await port('web')} ${option}
`,
    );
    endsWithTest(t, spawn(haproxy.path!, ['-f', config], { stdio: 'inherit' }));
    const client = await connectWhenOpen(t, door);
    client.write(GET);
    t.match((await client.readToEnd()).text, `"x-forwarded-for":"${own}"`);
    const itsStart = `127.0.0.1:${client.socket.localPort} `;
    await waitFor(() => lines().some((line) => line.startsWith(itsStart)), { what: 'the log line' });
    t.ok((await stat(`proxy_proto.web.versions.${version}.found`))! > before);
  });
}

t.test('a removed listener closes connections whose header is incomplete', async (t) => {
  const file = join(tempDir(t), 'lds.json');
  const version = (listeners: Config[]) =>
    writeFileSync(
      file,
      JSON.stringify({
        resources: listeners.map((each) => ({
          '@type': 'type.googleapis.com/envoy.config.listener.v3.Listener',
          ...each,
        })),
      }),
    );
  // No timeout applies to it.
  version([behindProxies(web('door'), {}, { listener_filters_timeout: '0s' })]);
  const changing = await startBaton(t, {
    args: ['-l', 'warning', '--drain-time-s', '1'],
    config: {
      ...bootstrap({ listeners: [], clusters: [staticCluster('echo', echo.port)] }),
      dynamic_resources: { lds_config: { path_config_source: { path: file } } },
      node: { id: 'n', cluster: 'c' },
    },
  });
  await waitFor(async () => (await changing.stat('listener_manager.total_listeners_active')) === 1);
  const waiting = await connectRaw(t, await changing.listenerPort('door'));
  await changing.waitForStat('listener.door.downstream_pre_cx_active', 1);
  version([]);
  await changing.admin('/config/reload', { method: 'POST' });
  t.equal((await waiting.readToEnd()).text, '');
  await changing.waitForStat('listener_manager.total_listeners_draining', 0);
});

t.test('a connection that is handed over in a hot restart keeps its client address', async (t) => {
  const own = join(tempDir(t), 'access.log');
  const format =
    '%DOWNSTREAM_REMOTE_ADDRESS% %DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT% %DOWNSTREAM_LOCAL_ADDRESS%\n';
  const config = bootstrap({
    listeners: [behindProxies(web('web', { access_log: [fileAccessLog(own, format)] }))],
    clusters: [staticCluster('echo', echo.port)],
  });
  const args = ['--parent-shutdown-time-s', '600', '--drain-time-s', '600', '--hand-over-connections', ...FLUSHED_SOON];
  const line = new EpochLine(t);
  const first = await line.start(0, { config, args });
  const client = await connectRaw(t, await first.listenerPort('web'));
  client.write(`${LINE}GET / HTTP/1.1\r\nhost: a\r\n\r\n`);
  await client.readUntil('"body":""}');
  const second = await line.start(1, { config, args });
  await waitFor(() => first.exit !== undefined, { what: 'the exit of the first process' });
  client.write(GET);
  t.match((await client.readToEnd()).text, '"x-forwarded-for":"192.0.2.1"');
  await second.waitForStat('listener.web.downstream_cx_active', 0);
  await waitFor(() => readFileSync(own, 'latin1').split('\n').length === 3, { what: 'two lines' });
  t.same(
    new Set(readFileSync(own, 'latin1').trim().split('\n')),
    new Set(['192.0.2.1:4000 127.0.0.1 198.51.100.2:443']),
  );
});

t.test('unsupported configurations are refused', async (t) => {
  const refusal = async (listener: Config) => {
    const { exit, stderr } = await startBaton(t, {
      wait: 'spawned',
      args: ['--mode', 'validate'],
      config: bootstrap({ listeners: [listener], clusters: [staticCluster('echo', echo.port)] }),
    }).then(async (process) => ({ exit: await process.exited, stderr: process.stderr }));
    t.equal(exit.code, 1);
    return stderr;
  };
  t.match(await refusal(behindProxies(web('a'), { rules: [{ tlv_type: 1 }] })), /rules.*TLVs are not kept/);
  t.match(await refusal({ ...web('a'), listener_filters: [{ name: 'a' }] }), /listener_filters\[0\]/);
  const other = {
    name: 'a',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.filters.listener.dynamic_modules.v3.DynamicModuleListenerFilter',
    },
  };
  t.match(await refusal({ ...web('a'), listener_filters: [other] }), /dynamic_modules/);
});

async function connectWhenOpen(t: Test, port: number) {
  await waitFor(
    () =>
      httpRequest(port).then(
        () => true,
        (error: NodeJS.ErrnoException) => error.code !== 'ECONNREFUSED',
      ),
    { what: `a listener on port ${port}` },
  );
  return connectRaw(t, port);
}
