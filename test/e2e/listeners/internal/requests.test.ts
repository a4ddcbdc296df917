// Internal listeners: requests and connections reach them inside the process, with their addresses, stats and failures as in Envoy 1.40.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { besideEnvoy, type ProxyProgram } from '../../harness/envoy.js';
import {
  type Config,
  fileAccessLog,
  HTTP2_CLUSTER,
  httpListener,
  httpRequest,
  startBaton,
  type Teardown,
  tcpListener,
  tempDir,
  waitFor,
} from '../../harness/index.js';
import { answering, managerOf, routeTo } from '../../http/proxy.js';
import { internal, internalBootstrap, internalCluster } from './config.js';

const ADDRESSES =
  '%DOWNSTREAM_LOCAL_ADDRESS%|%DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT%|%DOWNSTREAM_LOCAL_PORT%|' +
  '%DOWNSTREAM_LOCAL_ADDRESS_ENDPOINT_ID%|%DOWNSTREAM_DIRECT_LOCAL_ADDRESS%|%DOWNSTREAM_REMOTE_ADDRESS%|' +
  '%DOWNSTREAM_DIRECT_REMOTE_ADDRESS%|%PROTOCOL%|%REQ(X-FORWARDED-FOR)%\n';
const UPSTREAM =
  '%RESPONSE_CODE%|%RESPONSE_FLAGS%|%UPSTREAM_HOST%|%UPSTREAM_LOCAL_ADDRESS%|%UPSTREAM_REMOTE_ADDRESS%|' +
  '%UPSTREAM_REMOTE_ADDRESS_ENDPOINT_ID%\n';
const CLIENT = 'envoy://internal_client_address/';

/** Starts a listener whose requests go to internal ones, by their path. */
async function start(t: Teardown, program: ProxyProgram) {
  const directory = tempDir(t);
  const log = (name: string, format: string) => [fileAccessLog(join(directory, name), format)];
  const web = (name: string, more: Config = {}) =>
    internal(
      httpListener(
        name,
        0,
        managerOf([answering({ prefix: '/' }, name)], { access_log: log(name, ADDRESSES), ...more }),
      ),
    );
  const routes = ['one', 'two', 'chain', 'missing'].map((name) => routeTo({ prefix: `/${name}` }, name));
  const config = internalBootstrap(
    [
      httpListener('front', 0, managerOf(routes, { access_log: log('front', UPSTREAM) })),
      web('web', { use_remote_address: true }),
      internal(tcpListener('tcp', 0, { cluster: 'one', access_log: log('tcp', ADDRESSES) })),
    ],
    [
      internalCluster('one', 'web', 'first'),
      internalCluster('two', 'web', undefined, HTTP2_CLUSTER),
      internalCluster('chain', 'tcp', 'hop'),
      internalCluster('missing', 'nowhere', 'x'),
    ],
  );
  const baton = await startBaton(t, {
    ...program,
    args: ['-l', 'error', '--concurrency', '2', '--file-flush-interval-msec', '20'],
    config,
  });
  const port = await baton.listenerPort('front');
  const linesOf = (name: string) => {
    const path = join(directory, name);
    return existsSync(path) ? readFileSync(path, 'utf8').split('\n').slice(0, -1) : [];
  };
  const logged = async (name: string) => {
    await waitFor(() => linesOf(name).length > 0, { what: `a line in ${name}` });
    return linesOf(name);
  };
  return { baton, logged, get: (path: string) => httpRequest(port, path) };
}

besideEnvoy('a request reaches an internal listener, which logs the address of the endpoint', async (t, program) => {
  const { get, logged } = await start(t, program);
  t.match(await get('/one'), { status: 200, body: 'web' });
  const first = 'envoy://web/first';
  t.same(await logged('web'), [`${first}|${first}||first|${first}|${CLIENT}|${CLIENT}|HTTP/1.1|-`]);
  t.same(await logged('front'), [`200|-|${first}|${CLIENT}|${first}|first`]);
});

besideEnvoy('HTTP/2 is spoken to an internal listener, whose endpoint needs no ID', async (t, program) => {
  const { get, logged } = await start(t, program);
  t.match(await get('/two'), { status: 200, body: 'web' });
  const address = 'envoy://web/';
  t.same(await logged('web'), [`${address}|${address}|||${address}|${CLIENT}|${CLIENT}|HTTP/2|-`]);
});

besideEnvoy('internal listeners forward to others, and their connections are counted', async (t, program) => {
  const { baton, get } = await start(t, program);
  t.match(await get('/chain'), { status: 200, body: 'web' });
  await baton.waitForStats({
    'listener.envoy_internal_tcp.downstream_cx_total': 1,
    'listener.envoy_internal_tcp.downstream_cx_active': 1,
    'listener.envoy_internal_web.downstream_cx_total': 1,
    'listener.envoy_internal_web.http.web.downstream_rq_2xx': 1,
    'cluster.chain.upstream_cx_total': 1,
    'cluster.chain.upstream_cx_active': 1,
  });
});

besideEnvoy('a request to an internal listener that does not exist is answered with 503', async (t, program) => {
  const { baton, get, logged } = await start(t, program);
  t.match(await get('/missing'), {
    status: 503,
    body: 'upstream connect error or disconnect/reset before headers. reset reason: remote connection failure',
  });
  t.same(await logged('front'), ['503|UF|envoy://nowhere/x|-|-|-']);
  await baton.waitForStats({
    'cluster.missing.upstream_cx_connect_fail': 1,
    'cluster.missing.upstream_cx_total': 1,
    'cluster.missing.upstream_cx_active': 0,
  });
});

besideEnvoy('the admin interface shows internal addresses', async (t, program) => {
  const { baton } = await start(t, program);
  const text = (await baton.admin('/listeners')).body;
  t.match(text, /^web::envoy:\/\/web\/$/m);
  const { listener_statuses: listeners } = JSON.parse((await baton.admin('/listeners?format=json')).body);
  t.match(listeners.slice(1), [
    { name: 'web', local_address: { envoy_internal_address: { server_listener_name: 'web' } } },
    { name: 'tcp', local_address: { envoy_internal_address: { server_listener_name: 'tcp' } } },
  ]);
  t.match((await baton.admin('/clusters')).body, /^one::envoy:\/\/web\/first::cx_active::0$/m);
  const { cluster_statuses: clusters } = JSON.parse((await baton.admin('/clusters?format=json')).body);
  const one = clusters.find(({ name }: { name: string }) => name === 'one');
  t.match(one.host_statuses, [
    { address: { envoy_internal_address: { server_listener_name: 'web', endpoint_id: 'first' } } },
  ]);
  const dump = (await baton.admin('/config_dump?include_eds')).body;
  t.match(dump, /"internal_listener": \{\}/);
  t.match(dump, /"envoy_internal_address": \{\s+"server_listener_name": "web",\s+"endpoint_id": "first"/);
});
