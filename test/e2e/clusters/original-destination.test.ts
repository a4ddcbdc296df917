// Clusters of type ORIGINAL_DST. The expected results are those of Envoy 1.40.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { besideEnvoy } from '../harness/envoy.js';
import {
  bootstrap,
  type Config,
  connectRaw,
  fileAccessLog,
  startBaton,
  startTcpUpstream,
  startUpstream,
  staticCluster,
  tcpListener,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { managerOf, routeTo, startProxy } from '../http/proxy.js';

function destinations(name: string, config: Config = {}, more: Config = {}): Config {
  return {
    name,
    type: 'ORIGINAL_DST',
    lb_policy: 'CLUSTER_PROVIDED',
    connect_timeout: '2s',
    original_dst_lb_config: config,
    ...more,
  };
}

const TO_METADATA: Config = {
  name: 'envoy.filters.http.header_to_metadata',
  typed_config: {
    '@type': 'type.googleapis.com/envoy.extensions.filters.http.header_to_metadata.v3.Config',
    request_rules: [
      { header: 'where', on_header_present: { metadata_namespace: 'mesh', key: 'host', type: 'STRING' } },
    ],
  },
};
const ROUTER: Config = {
  name: 'envoy.filters.http.router',
  typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
};

besideEnvoy('a header of the request names its host', async (t, program) => {
  const one = await startUpstream(t, (_, response) => void response.end('one'));
  const two = await startUpstream(t, (_, response) => void response.end('two'));
  const logs = tempDir(t);
  const { baton, get } = await startProxy(t, {
    ...program,
    args: ['-l', 'warning', '--file-flush-interval-msec', '20'],
    listeners: {
      in: managerOf(
        [
          routeTo({ prefix: '/own' }, 'own'),
          routeTo({ prefix: '/port' }, 'port'),
          routeTo({ prefix: '/metadata' }, 'metadata'),
          routeTo({ prefix: '/none' }, 'none'),
          routeTo({ prefix: '/' }, 'header'),
        ],
        {
          http_filters: [TO_METADATA, ROUTER],
          access_log: [fileAccessLog(join(logs, 'log'), '%UPSTREAM_HOST% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS%\n')],
        },
      ),
    },
    clusters: [
      destinations('header', { use_http_header: true }),
      destinations('own', { use_http_header: true, http_header_name: 'where' }),
      destinations('port', { use_http_header: true, upstream_port_override: two.port }),
      destinations('metadata', { metadata_key: { key: 'mesh', path: [{ key: 'host' }] } }),
      destinations('none'),
    ],
  });
  const ask = async (path: string, headers: Record<string, string | string[]> = {}) => {
    const { body, status } = await get(path, { headers });
    return `${status} ${body}`;
  };
  const HEADER = 'x-envoy-original-dst-host';
  t.equal(await ask('/', { [HEADER]: `127.0.0.1:${one.port}` }), '200 one');
  t.equal(await ask('/', { [HEADER]: `127.0.0.1:${two.port}` }), '200 two');
  t.equal(await ask('/', { [HEADER]: `127.0.0.1:${one.port}` }), '200 one');
  t.equal(await ask('/own', { where: `127.0.0.1:${two.port}`, [HEADER]: `127.0.0.1:${one.port}` }), '200 two');
  t.equal(await ask('/port', { [HEADER]: '127.0.0.1:9' }), '200 two');
  t.equal(await ask('/metadata', { where: `127.0.0.1:${one.port}` }), '200 one');
  const UNHEALTHY = '503 no healthy upstream';
  for (const text of ['localhost:80', '127.0.0.1', '127.0.0.1:', '[::1', 'x', '127.0.0.1:99999', '/etc/socket']) {
    t.equal(await ask('/', { [HEADER]: text }), UNHEALTHY, text);
  }
  t.equal(await ask('/'), UNHEALTHY);
  t.equal(await ask('/none'), UNHEALTHY);
  t.equal(await ask('/metadata', { where: 'nowhere' }), UNHEALTHY);
  await baton.waitForStats({
    'cluster.header.original_dst_host_invalid': 7,
    'cluster.header.upstream_cx_none_healthy': 8,
    'cluster.header.membership_total': 2,
    'cluster.header.membership_change': 2,
    'cluster.header.upstream_cx_total': 2,
    'cluster.header.upstream_rq_total': 3,
    'cluster.metadata.original_dst_host_invalid': 1,
    'cluster.none.original_dst_host_invalid': 0,
    'cluster.none.membership_total': 0,
  });
  const clusters = (await baton.admin('/clusters')).body;
  t.match(clusters, `header::127.0.0.1:${one.port}::rq_total::2`);
  t.match(clusters, `header::127.0.0.1:${one.port}::hostname::header127.0.0.1:${one.port}`);
  await waitFor(() => readFileSync(join(logs, 'log'), 'utf8').split('\n').length > 16);
  const lines = readFileSync(join(logs, 'log'), 'utf8').split('\n');
  t.equal(lines[0], `127.0.0.1:${one.port} - via_upstream`);
  t.equal(lines[6], '- UH no_healthy_upstream');
});

besideEnvoy('the text of an address does not matter', async (t, program) => {
  const one = await startUpstream(t, (_, response) => void response.end('one'), 0, '::');
  const { baton, get } = await startProxy(t, {
    ...program,
    listeners: { in: managerOf([routeTo({ prefix: '/' }, 'header', { timeout: '0s' })]) },
    clusters: [destinations('header', { use_http_header: true })],
  });
  const ask = async (address: string) => (await get('/', { headers: { 'x-envoy-original-dst-host': address } })).body;
  for (const ip of ['[::ffff:127.0.0.1]', '[::FFFF:7f00:1]', '[0:0:0:0:0:0:0:1]', '127.0.0.1'])
    t.equal(await ask(`${ip}:${one.port}`), 'one', ip);
  await baton.waitForStats({ 'cluster.header.upstream_rq_total': 4, 'cluster.header.original_dst_host_invalid': 0 });
});

besideEnvoy('copies of a request that waits for its host have its body', async (t, program) => {
  const copies: string[] = [];
  const one = await startUpstream(t, (_, response) => void response.end('one'));
  const two = await startUpstream(t, (request, response) => {
    request.setEncoding('utf8');
    request.on('data', (part: string) => void copies.push(part));
    request.on('end', () => response.end());
  });
  const { get } = await startProxy(t, {
    ...program,
    listeners: {
      in: managerOf([routeTo({ prefix: '/' }, 'header', { request_mirror_policies: [{ cluster: 'two' }] })]),
    },
    clusters: [destinations('header', { use_http_header: true }), staticCluster('two', two.port)],
  });
  const headers = { 'x-envoy-original-dst-host': `127.0.0.1:${one.port}`, 'content-length': 4 };
  t.equal((await get('/', { method: 'POST', headers, body: 'body' })).body, 'one');
  await waitFor(() => copies.join('') === 'body');
});

besideEnvoy('hosts that are not used are removed after cleanup_interval', async (t, program) => {
  const one = await startUpstream(t, (_, response) => void response.end('one'));
  const { baton, get } = await startProxy(t, {
    ...program,
    listeners: { in: managerOf([routeTo({ prefix: '/' }, 'header')]) },
    clusters: [destinations('header', { use_http_header: true }, { cleanup_interval: '0.2s' })],
  });
  const headers = { 'x-envoy-original-dst-host': `127.0.0.1:${one.port}` };
  t.equal((await get('/', { headers })).body, 'one');
  await baton.waitForStats({ 'cluster.header.membership_total': 1 });
  // The connection is in use by nobody, but open.
  for (const socket of one.sockets) socket.end();
  await baton.waitForStats({ 'cluster.header.membership_total': 0 });
  t.equal((await get('/', { headers })).body, 'one');
  await baton.waitForStats({ 'cluster.header.membership_change': 3 });
});

besideEnvoy('a connection is passed on to another listener once', async (t, program) => {
  const one = await startTcpUpstream(t, (socket) => void socket.once('data', () => socket.end('one')));
  const two = await startTcpUpstream(t, (socket) => void socket.once('data', () => socket.end('two')));
  const listener = (name: string, port: number, cluster: string) => ({
    ...tcpListener(name, port, { cluster }),
    use_original_dst: true,
    listener_filters: [
      {
        name: 'envoy.filters.listener.proxy_protocol',
        typed_config: {
          '@type': 'type.googleapis.com/envoy.extensions.filters.listener.proxy_protocol.v3.ProxyProtocol',
        },
      },
    ],
  });
  const unbound = (octet: number) => ({
    address: { socket_address: { address: `10.66.0.${octet}`, port_value: 80 } },
    bind_to_port: false,
  });
  const baton = await startBaton(t, {
    ...program,
    args: ['-l', 'warning'],
    config: bootstrap({
      listeners: [
        listener('in', 0, 'two'),
        { ...listener('one', 80, 'one'), ...unbound(1) },
        { ...listener('two', 80, 'two'), ...unbound(2) },
      ],
      clusters: [staticCluster('one', one.port), staticCluster('two', two.port)],
    }),
  });
  const raw = await connectRaw(t, await baton.listenerPort('in'));
  for (const octet of [1, 2]) raw.write(`PROXY TCP4 10.0.0.1 10.66.0.${octet} 7 80\r\n`);
  raw.write('hello');
  await raw.readUntil('one');
});

besideEnvoy('a TCP proxy connects to the destination that the PROXY protocol reports', async (t, program) => {
  const upstream = await startTcpUpstream(t, (socket) => socket.end('hello'));
  const logs = tempDir(t);
  const log = join(logs, 'log');
  const baton = await startBaton(t, {
    ...program,
    args: ['-l', 'warning', '--file-flush-interval-msec', '20'],
    config: bootstrap({
      listeners: [
        {
          ...tcpListener('in', 0, {
            cluster: 'any',
            access_log: [
              fileAccessLog(
                log,
                '%DOWNSTREAM_LOCAL_ADDRESS% %DOWNSTREAM_DIRECT_LOCAL_ADDRESS% %UPSTREAM_HOST% %RESPONSE_FLAGS%\n',
              ),
            ],
          }),
          listener_filters: [
            {
              name: 'envoy.filters.listener.proxy_protocol',
              typed_config: {
                '@type': 'type.googleapis.com/envoy.extensions.filters.listener.proxy_protocol.v3.ProxyProtocol',
                allow_requests_without_proxy_protocol: true,
              },
            },
          ],
        },
      ],
      clusters: [destinations('any')],
    }),
  });
  const port = await baton.listenerPort('in');
  const redirected = await connectRaw(t, port);
  redirected.write(`PROXY TCP4 10.0.0.1 127.0.0.1 7 ${upstream.port}\r\n`);
  t.equal(await redirected.readUntil('hello'), 'hello');
  redirected.end();
  await waitFor(() => readFileSync(log, 'utf8') !== '');
  const direct = await connectRaw(t, port);
  direct.write('anything\r\n');
  await direct.readToEnd();
  await waitFor(() => readFileSync(log, 'utf8').split('\n').length > 2);
  const own = `127.0.0.1:${port}`;
  t.same(readFileSync(log, 'utf8').split('\n').slice(0, 2), [
    `127.0.0.1:${upstream.port} ${own} 127.0.0.1:${upstream.port} -`,
    `${own} ${own} - UH`,
  ]);
});

t.test('configurations that Envoy refuses are refused', async (t) => {
  const refused = async (cluster: Config, pattern: RegExp) => {
    const baton = await startBaton(t, {
      args: ['--mode', 'validate'],
      wait: 'spawned',
      config: bootstrap({ listeners: [], clusters: [cluster] }),
    });
    t.equal((await baton.exited).code, 1);
    t.match(baton.stderr, pattern);
  };
  await refused({ name: 'a', type: 'ORIGINAL_DST' }, /LB policy ROUND_ROBIN is not valid/);
  await refused({ name: 'a', type: 'STATIC', lb_policy: 'CLUSTER_PROVIDED' }, /does not determine the host/);
  await refused(destinations('a', { http_header_name: 'x' }), /it has an effect with use_http_header only/);
  await refused(destinations('a', { use_http_header: true, http_header_name: 'x y' }), /not the name of a header/);
  await refused(destinations('a', {}, { load_assignment: { cluster_name: 'a' } }), /must have no load assignment/);
});
