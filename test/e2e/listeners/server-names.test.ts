// TLS that is not terminated here: listener filters detect the requested server, filter chains are selected by it, and the TCP
// proxy passes the connection through. The expected results are those of Envoy 1.40.

import { once } from 'node:events';
import { connect } from 'node:tls';
import type { Test } from 'tap';
import {
  alpn,
  clientHello,
  helloMessage,
  records,
  serverName,
} from '../../extensions/filters/listener/tls-inspector/hello-bytes.js';
import { besideEnvoy, type ProxyProgram } from '../harness/envoy.js';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  connectRaw,
  fileAccessLog,
  freePort,
  logLines,
  type RawConnection,
  startBaton,
  startTcpUpstream,
  staticCluster,
  tcpListener,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { startTlsUpstream } from './tls-upstream.js';

const LISTENER_FILTERS = 'type.googleapis.com/envoy.extensions.filters.listener';
const HTTP_INSPECTOR = { '@type': `${LISTENER_FILTERS}.http_inspector.v3.HttpInspector` };
const SNI_CLUSTER = { '@type': 'type.googleapis.com/envoy.extensions.filters.network.sni_cluster.v3.SniCluster' };
const FORMAT =
  '%REQUESTED_SERVER_NAME%|%TLS_JA3_FINGERPRINT%|%TLS_JA4_FINGERPRINT%|%UPSTREAM_CLUSTER%|%RESPONSE_FLAGS%\n';

function inspector(more: Config = {}): Config {
  return { '@type': `${LISTENER_FILTERS}.tls_inspector.v3.TlsInspector`, ...more };
}

/** Returns a filter chain that forwards to the cluster with its name. */
function chain(name: string, match?: Config): Config {
  const [only] = tcpListener(name, 0, { cluster: name })['filter_chains'] as Config[];
  return { ...only, name, ...(match && { filter_chain_match: match }) };
}

async function listener(name: string, filters: readonly Config[], chains: readonly Config[]): Promise<Config> {
  return {
    ...tcpListener(name, await freePort(), {}),
    stat_prefix: name,
    listener_filters: filters.map((typed_config) => ({ name: String(typed_config['@type']), typed_config })),
    listener_filters_timeout: '5s',
    filter_chains: chains,
  };
}

/** Starts the program with hosts that answer with the name of their cluster. */
async function start(t: Test, program: ProxyProgram, names: readonly string[], listeners: readonly Config[]) {
  const clusters = [];
  for (const name of names) {
    const { port } = await startTcpUpstream(t, (socket) => {
      socket.on('error', () => {});
      socket.write(name);
      socket.once('data', () => socket.end());
    });
    clusters.push(staticCluster(name, port));
  }
  const args = ['--concurrency', '1', '--file-flush-interval-msec', '20', '-l', 'warning'];
  return startBaton(t, { ...program, args, config: bootstrap({ listeners: [...listeners], clusters }) });
}

async function open(t: Test, baton: BatonProcess, name: string): Promise<RawConnection> {
  return connectRaw(t, await baton.listenerPort(name));
}

/** Returns what a client gets that sends these bytes: the name of a cluster, or '' if it is closed. */
async function answerTo(t: Test, baton: BatonProcess, name: string, bytes: Buffer): Promise<string> {
  const connection = await open(t, baton, name);
  connection.write(bytes);
  const { text } = await connection.readToEnd();
  connection.destroy();
  return text;
}

besideEnvoy('the requested server selects the filter chain', async (t, program) => {
  const names = ['exact', 'wild', 'h2', 'tls', 'plain'];
  const door = await listener(
    'door',
    [inspector()],
    [
      chain('exact', { server_names: ['a.example.com'] }),
      chain('wild', { server_names: ['*.example.com'] }),
      chain('h2', { transport_protocol: 'tls', application_protocols: ['h2'] }),
      chain('tls', { transport_protocol: 'tls' }),
      chain('plain', { transport_protocol: 'raw_buffer' }),
    ],
  );
  const unaware = await listener(
    'unaware',
    [],
    [chain('exact', { server_names: ['a.example.com'] }), chain('plain', { transport_protocol: 'raw_buffer' })],
  );
  const baton = await start(t, program, names, [door, unaware]);
  const hello = async (servername = '', ...ALPNProtocols: string[]) => clientHello({ servername, ALPNProtocols });
  t.equal(await answerTo(t, baton, 'door', await hello('a.example.com')), 'exact');
  t.equal(await answerTo(t, baton, 'door', await hello('A.EXAMPLE.com', 'h2')), 'exact');
  t.equal(await answerTo(t, baton, 'door', await hello('c.b.example.com')), 'wild');
  t.equal(await answerTo(t, baton, 'door', await hello('example.com', 'http/1.1')), 'tls');
  t.equal(await answerTo(t, baton, 'door', await hello('', 'http/1.1', 'h2')), 'h2');
  t.equal(await answerTo(t, baton, 'door', Buffer.from('GET / HTTP/1.1\r\n\r\n')), 'plain');
  t.equal(await answerTo(t, baton, 'unaware', await hello('a.example.com')), 'plain', 'without the inspector');
  const stats = ['tls_found', 'tls_not_found', 'sni_found', 'sni_not_found', 'alpn_found', 'alpn_not_found'];
  const counted = await Promise.all(stats.map((stat) => baton.stat(`tls_inspector.${stat}`)));
  t.same(counted, [5, 1, 4, 1, 3, 2]);
  await waitFor(async () => /bytes_processed: .*P100\(/.test((await baton.admin('/stats?filter=tls_insp')).body));
});

besideEnvoy('a hello may come in any number of segments and records', async (t, program) => {
  const door = await listener('door', [inspector()], [chain('exact', { server_names: ['a.example.com'] })]);
  const baton = await start(t, program, ['exact'], [door]);
  const message = helloMessage({ extensions: [serverName('a.example.com'), alpn('h2'), [21, Buffer.alloc(9000)]] });
  const bytes = records(message, 150);
  const connection = await open(t, baton, 'door');
  for (let at = 0; at < bytes.length; at += 1000) {
    connection.write(bytes.subarray(at, at + 1000));
    await waitFor(
      async () => (await baton.stat('listener.door.downstream_pre_cx_active')) === 1 || at + 1000 >= bytes.length,
    );
  }
  t.equal((await connection.readToEnd()).text, 'exact');
});

besideEnvoy('sni_cluster: the TCP proxy uses the cluster with the requested name', async (t, program) => {
  const logFile = `${tempDir(t)}/access.log`;
  const proxy = { cluster: 'other', access_log: [fileAccessLog(logFile, FORMAT)] };
  const [only] = tcpListener('door', 0, proxy)['filter_chains'] as { filters: Config[] }[];
  const filters = [{ name: 'sni', typed_config: SNI_CLUSTER }, ...only!.filters];
  const fingerprints = { enable_ja3_fingerprinting: true, enable_ja4_fingerprinting: true };
  const door = await listener('door', [inspector(fingerprints)], [{ filters }]);
  const baton = await start(t, program, ['other', 'a.example.com'], [door]);
  const hello = (name: string) => records(helloMessage({ extensions: [serverName(name)] }));
  t.equal(await answerTo(t, baton, 'door', hello('A.example.com')), 'a.example.com');
  t.equal(await answerTo(t, baton, 'door', hello('b.example.com')), '', 'a cluster that does not exist');
  t.equal(await answerTo(t, baton, 'door', records(helloMessage())), 'other');
  t.equal(await answerTo(t, baton, 'door', hello('x\r\n"')), '');
  t.equal(await answerTo(t, baton, 'door', hello('a_b.org')), '');
  await waitFor(() => logLines(logFile).length === 5);
  const fingerprinted = '1e7c622032b0cb79401b0f7be3793a1a|t12d010100_0f2cb44170f4_000000000000';
  t.same(logLines(logFile).sort(), [
    '-|ea1e247991e541e39bf918cb7cfa5139|t12i010000_0f2cb44170f4_000000000000|other|-',
    `a.example.com|${fingerprinted}|a.example.com|-`,
    `a_b.org|${fingerprinted}|-|NC`,
    `b.example.com|${fingerprinted}|-|NC`,
    `invalid:x___|${fingerprinted}|-|NC`,
  ]);
});

besideEnvoy('RBAC allows connections by their requested server name', async (t, program) => {
  const permissions = [{ requested_server_name: { suffix: '.example.com' } }];
  const rules = { policies: { names: { permissions, principals: [{ any: true }] } } };
  const rbac = {
    '@type': 'type.googleapis.com/envoy.extensions.filters.network.rbac.v3.RBAC',
    stat_prefix: 'names',
    rules,
  };
  const [only] = tcpListener('door', 0, { cluster: 'host' })['filter_chains'] as { filters: Config[] }[];
  const filters = [{ name: 'rbac', typed_config: rbac }, ...only!.filters];
  const baton = await start(t, program, ['host'], [await listener('door', [inspector()], [{ filters }])]);
  for (const [name, stat] of [
    ['a.example.com', 'allowed'],
    ['a.example.org', 'denied'],
  ]) {
    const connection = await open(t, baton, 'door');
    connection.write(records(helloMessage({ extensions: [serverName(name!)] })));
    await connection.readToEnd();
    connection.destroy();
    await baton.waitForStat(`names.rbac.${stat}`, 1);
  }
});

besideEnvoy('what is not a hello is served as plain bytes, or refused on request', async (t, program) => {
  const strict = { close_connection_on_client_hello_parsing_errors: true, max_client_hello_size: 256 };
  const baton = await start(
    t,
    program,
    ['plain'],
    [
      await listener('open', [inspector()], [chain('plain')]),
      await listener('strict', [inspector(strict)], [chain('plain')]),
    ],
  );
  t.equal(await answerTo(t, baton, 'open', Buffer.from('hello')), 'plain');
  t.equal(await answerTo(t, baton, 'open', Buffer.alloc(20_000, 'x')), 'plain');
  t.equal(await baton.stat('tls_inspector.tls_not_found'), 2);
  t.equal(await baton.stat('tls_inspector.client_hello_too_large'), 0);
  t.equal(await answerTo(t, baton, 'strict', Buffer.from('hello')), '');
  t.equal(await answerTo(t, baton, 'strict', await clientHello({ servername: 'a.example.com' })), '');
  t.equal(await answerTo(t, baton, 'open', records(helloMessage({ version: 0x0300 }))), '');
  t.equal(await answerTo(t, baton, 'open', records(helloMessage({ extensions: [[21, Buffer.alloc(16_380)]] }))), '');
  t.equal(await baton.stat('tls_inspector.tls_not_found'), 4);
  t.equal(await baton.stat('tls_inspector.client_hello_too_large'), 2);
  t.equal(await baton.stat('listener.strict.downstream_cx_total'), 0);
});

besideEnvoy('http_inspector: the version of HTTP selects the filter chain', async (t, program) => {
  const versions = { old: 'http/1.0', new: 'http/1.1', two: 'h2c' };
  const chains = Object.entries(versions).map(([name, version]) => chain(name, { application_protocols: [version] }));
  const door = await listener('door', [inspector(), HTTP_INSPECTOR], [...chains, chain('other')]);
  const baton = await start(t, program, ['old', 'new', 'two', 'other'], [door]);
  t.equal(await answerTo(t, baton, 'door', Buffer.from('GET / HTTP/1.0\r\n\r\n')), 'old');
  t.equal(await answerTo(t, baton, 'door', Buffer.from('GET / HTTP/1.1\r\n')), 'new');
  t.equal(await answerTo(t, baton, 'door', Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')), 'two');
  t.equal(await answerTo(t, baton, 'door', Buffer.from('SSH-2.0-x\r\n')), 'other');
  t.equal(await answerTo(t, baton, 'door', records(helloMessage({ extensions: [alpn('h2')] }))), 'other');
  const stats = ['http10_found', 'http11_found', 'http2_found', 'http_not_found', 'read_error'];
  t.same(await Promise.all(stats.map((stat) => baton.stat(`http_inspector.${stat}`))), [1, 1, 1, 1, 0]);
});

besideEnvoy('a TLS client reaches the host behind the proxy, with its certificate', async (t, program) => {
  const { port, certificate } = await startTlsUpstream(t, 'a.example.com');
  const door = await listener('door', [inspector()], [chain('secure', { server_names: ['a.example.com'] })]);
  const clusters = [staticCluster('secure', port)];
  const baton = await startBaton(t, { ...program, config: bootstrap({ listeners: [door], clusters }) });
  const to = { host: '127.0.0.1', port: await baton.listenerPort('door'), ca: certificate };
  const client = connect({ ...to, servername: 'a.example.com' });
  t.teardown(() => client.destroy());
  await once(client, 'secureConnect');
  client.write('ping');
  t.equal(String((await once(client, 'data'))[0]), 'pong from a.example.com');
  const other = connect({ ...to, servername: 'b.example.com' });
  await t.rejects(once(other, 'secureConnect'), 'no chain is for this name');
  t.equal(await baton.stat('listener.door.no_filter_chain_match'), 1);
});
