// The transport socket internal_upstream: a connection to an internal listener brings metadata of host and cluster, and the filter state
// that its stream shares. The listener filter original_dst restores the ends of a connection from them. The results are those of Envoy 1.40.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { besideEnvoy, type ProxyProgram } from '../../harness/envoy.js';
import {
  type Config,
  fileAccessLog,
  httpListener,
  httpRequest,
  ROUTER_FILTER,
  startBaton,
  startEchoUpstream,
  type Teardown,
  tcpListener,
  tempDir,
  waitFor,
} from '../../harness/index.js';
import { answering, managerOf, routeTo } from '../../http/proxy.js';
import { internal, internalBootstrap, internalCluster, internalUpstream, ORIGINAL_DST } from './config.js';

const DESTINATION = 'envoy.filters.listener.original_dst';
const FORMAT =
  '%DOWNSTREAM_LOCAL_ADDRESS% %DOWNSTREAM_DIRECT_LOCAL_ADDRESS% %DOWNSTREAM_REMOTE_ADDRESS% ' +
  'host=%DYNAMIC_METADATA(of-host:k)% cluster=%DYNAMIC_METADATA(of-cluster:k)% ' +
  'once=%FILTER_STATE(once:PLAIN)% always=%FILTER_STATE(always:PLAIN)% never=%FILTER_STATE(never:PLAIN)%\n';
const CLIENT = 'envoy://internal_client_address/';

function object(key: string, text: string, sharing: string, more: Config = {}): Config {
  const format_string = { text_format_source: { inline_string: text } };
  return { object_key: key, format_string, shared_with_upstream: sharing, ...more };
}

/** Sets the filter state of a request, some of it from its headers. */
const SET_STATE: Config = {
  name: 'envoy.filters.http.set_filter_state',
  typed_config: {
    '@type': 'type.googleapis.com/envoy.extensions.filters.http.set_filter_state.v3.Config',
    on_request_headers: [
      object('once', '%REQ(x-once)%', 'ONCE', { factory_key: 'envoy.hashable_string', skip_if_empty: true }),
      object('always', '%REQ(x-always)%', 'TRANSITIVE', { factory_key: 'envoy.hashable_string', skip_if_empty: true }),
      object('text', '%REQ(x-text)%', 'ONCE', { factory_key: 'envoy.string', skip_if_empty: true }),
      object('envoy.tcp_proxy.cluster', '', 'ONCE', {
        format_string: { text_format_source: { inline_string: '%REQ(x-cluster)%' }, omit_empty_values: true },
        skip_if_empty: true,
      }),
      object('never', 'kept', 'NONE', { factory_key: 'envoy.string' }),
      object(`${DESTINATION}.local_ip`, '%REQ(x-local)%', 'ONCE', { skip_if_empty: true }),
      object(`${DESTINATION}.remote_ip`, '%REQ(x-remote)%', 'ONCE', { skip_if_empty: true }),
    ],
  },
};

/** Returns the cluster with metadata of its own and of its host. */
function withMetadata(cluster: Config, ofHost: Config, ofCluster: Config = {}): Config {
  const { endpoints } = cluster['load_assignment'] as { endpoints: { lb_endpoints: Config[] }[] };
  const [host] = endpoints[0]!.lb_endpoints;
  const lb_endpoints = [{ ...host, metadata: { filter_metadata: ofHost } }];
  const load_assignment = { cluster_name: cluster['name'], endpoints: [{ lb_endpoints }] };
  return { ...cluster, metadata: { filter_metadata: ofCluster }, load_assignment };
}

const fromHost = (name: string) => ({ name, kind: { host: {} } });
const fromCluster = (name: string) => ({ name, kind: { cluster: {} } });

async function start(t: Teardown, program: ProxyProgram, origin = 1) {
  const directory = tempDir(t);
  const log = (name: string) => ({ access_log: [fileAccessLog(join(directory, name), FORMAT)] });
  const answers = (name: string, more: Config = {}) =>
    httpListener(name, 0, managerOf([answering({ prefix: '/' }, name)], { ...log(name), ...more }));
  const passing = { transport_socket: internalUpstream() };
  const config = internalBootstrap(
    [
      httpListener(
        'front',
        0,
        managerOf(
          ['tcp', 'web', 'first', 'redirected'].map((name) => routeTo({ prefix: `/${name}` }, name)),
          { http_filters: [SET_STATE, ROUTER_FILTER] },
        ),
      ),
      internal(tcpListener('tcp', 0, { cluster: 'plain', ...log('tcp') })),
      internal(answers('web', { use_remote_address: true }), { listener_filters: [ORIGINAL_DST] }),
      internal(tcpListener('first', 0, { cluster: 'second', ...log('first') })),
      internal(answers('second')),
      internal(tcpListener('redirected', 0, { cluster: 'original', ...log('redirected') }), {
        listener_filters: [ORIGINAL_DST],
      }),
      internal(answers('plain')),
    ],
    [
      withMetadata(
        internalCluster('tcp', 'tcp', 'e', {
          transport_socket: internalUpstream([fromHost('of-host'), fromCluster('of-cluster'), fromHost('missing')]),
        }),
        { 'of-host': { k: 'h' }, 'not-passed': { k: 'x' } },
        { 'of-cluster': { k: 'c' } },
      ),
      internalCluster('web', 'web', undefined, passing),
      internalCluster('first', 'first', undefined, passing),
      internalCluster('second', 'second', undefined, passing),
      withMetadata(
        internalCluster('redirected', 'redirected', undefined, {
          transport_socket: internalUpstream([fromHost(DESTINATION)]),
        }),
        { [DESTINATION]: { local: `127.0.0.1:${origin}`, remote: '192.0.2.9:1' } },
      ),
      internalCluster('plain', 'plain'),
      { name: 'original', type: 'ORIGINAL_DST', lb_policy: 'CLUSTER_PROVIDED', connect_timeout: '2s' },
    ],
  );
  const baton = await startBaton(t, {
    ...program,
    args: ['-l', 'error', '--concurrency', '1', '--file-flush-interval-msec', '20'],
    config,
  });
  const port = await baton.listenerPort('front');
  const logged = async (name: string, count = 1) => {
    const path = join(directory, name);
    const lines = () => (existsSync(path) ? readFileSync(path, 'utf8').split('\n').slice(0, -1) : []);
    await waitFor(() => lines().length >= count, { what: `${count} lines in ${name}` });
    return lines();
  };
  return { baton, logged, get: (path: string, headers = {}) => httpRequest(port, path, { headers }) };
}

besideEnvoy('a TCP connection gets the metadata of its host and cluster', async (t, program) => {
  const { baton, get, logged } = await start(t, program);
  t.match(await get('/tcp', { 'x-once': 'o' }), { status: 200, body: 'plain' });
  await baton.waitForStats({ 'cluster.tcp.internal_upstream.no_metadata': 1 });
  await baton.kill('SIGTERM');
  t.same(await logged('tcp'), [`envoy://tcp/e envoy://tcp/e ${CLIENT} host=h cluster=c once=o always=- never=-`]);
  t.same(await logged('plain'), [`envoy://plain/ envoy://plain/ ${CLIENT} host=- cluster=- once=- always=- never=-`]);
});

besideEnvoy('filter state is shared with one connection, or with all that follow', async (t, program) => {
  const { get, logged } = await start(t, program);
  t.match(await get('/first', { 'x-once': 'o', 'x-always': 'a' }), { status: 200, body: 'second' });
  t.same(await logged('second'), [
    `envoy://second/ envoy://second/ ${CLIENT} host=- cluster=- once=- always=a never=-`,
  ]);
});

besideEnvoy('shared filter state selects the cluster of a TCP proxy', async (t, program) => {
  const { get } = await start(t, program);
  t.match(await get('/first', { 'x-cluster': 'plain' }), { status: 200, body: 'plain' });
});

besideEnvoy('requests with other filter state have other connections', async (t, program) => {
  const { baton, get, logged } = await start(t, program);
  for (const value of ['1', '2', '1']) await get('/web', { 'x-once': value });
  const line = (value: string) => `envoy://web/ envoy://web/ ${CLIENT} host=- cluster=- once=${value} always=- never=-`;
  t.same(await logged('web', 3), ['1', '2', '1'].map(line));
  await baton.waitForStats({ 'cluster.web.upstream_cx_total': 2 });
});

besideEnvoy('original_dst restores both ends of a connection from filter state', async (t, program) => {
  const { get, logged } = await start(t, program);
  await get('/web', { 'x-local': '198.51.100.1:80', 'x-remote': '192.0.2.7:4000' });
  await get('/web', { 'x-local': '[2001:db8::1]:80' });
  await get('/web', { 'x-local': 'no-address', 'x-remote': '192.0.2.300:1' });
  const rest = 'host=- cluster=- once=- always=- never=-';
  t.same(await logged('web', 3), [
    `198.51.100.1:80 envoy://web/ 192.0.2.7:4000 ${rest}`,
    `[2001:db8::1]:80 envoy://web/ ${CLIENT} ${rest}`,
    `envoy://web/ envoy://web/ ${CLIENT} ${rest}`,
  ]);
});

besideEnvoy(
  'original_dst restores the destination from metadata, and an ORIGINAL_DST cluster connects there',
  async (t, program) => {
    const origin = await startEchoUpstream(t);
    const { baton, get, logged } = await start(t, program, origin.port);
    t.match(await get('/redirected'), { status: 200, body: /"url":"\/redirected"/ });
    await baton.kill('SIGTERM');
    t.same(await logged('redirected'), [
      `127.0.0.1:${origin.port} envoy://redirected/ ${CLIENT} host=- cluster=- once=- always=- never=-`,
    ]);
  },
);

t.test(
  'requests with other objects of the kind envoy.string have other connections too, unlike in Envoy',
  async (t) => {
    const { baton, get } = await start(t, { command: undefined });
    for (const value of ['1', '2']) await get('/first', { 'x-text': value });
    await baton.waitForStats({ 'cluster.first.upstream_cx_total': 2, 'cluster.second.upstream_cx_total': 2 });
  },
);
