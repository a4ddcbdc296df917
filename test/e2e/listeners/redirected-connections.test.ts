// Connections that iptables redirects: use_original_dst, bind_to_port: false and the original_dst filter. The file runs itself in a network
// namespace of its own, where it may change the rules.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { besideEnvoy } from '../harness/envoy.js';
import {
  bootstrap,
  type Config,
  fileAccessLog,
  httpListener,
  httpRequest,
  startBaton,
  startTcpUpstream,
  startUpstream,
  type Teardown,
  tcpListener,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { managerOf, routeTo } from '../http/proxy.js';

const INSIDE = 'BATON_TEST_NAMESPACE';
const NAMESPACE = ['--net', '--pid', '--fork', '--kill-child', '--mount-proc'];

/** Addresses of the namespace's loopback interface. Only what comes from CLIENT is redirected. */
const CLIENT = '10.66.0.1';
const SERVICE = '10.66.0.2';
const CLIENT6 = 'fd00:66::1';
const SERVICE6 = 'fd00:66::2';
const PROXY_PORT = 15001;
const PROXY_PORT6 = 15006;

if (process.env[INSIDE] === undefined) runInNamespace();
else runTests();

function runInNamespace(): void {
  const command = 'iptables -t nat -L -n && ip6tables -t nat -L -n';
  const canRedirect = spawnSync('unshare', [...NAMESPACE, 'sh', '-c', command]).status === 0;
  const skip = canRedirect ? false : 'it needs iptables and the right to make network namespaces';
  t.test('redirected connections', { skip }, async (t) => {
    const file = fileURLToPath(import.meta.url);
    const env = { ...process.env, [INSIDE]: '1' };
    const child = spawn('unshare', [...NAMESPACE, process.execPath, file], {
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    t.teardown(() => child.kill('SIGKILL'));
    const ended = once(child, 'exit');
    const output = await text(child.stdout);
    const [status] = await ended;
    t.equal(status, 0, output);
  });
}

function sh(command: string): void {
  const { status, stderr } = spawnSync('sh', ['-ec', command], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command}: ${stderr}`);
}

function runTests(): void {
  sh(`
    ip link set lo up
    ip addr add ${CLIENT}/32 dev lo && ip addr add ${SERVICE}/32 dev lo
    ip addr add ${CLIENT6}/128 dev lo nodad && ip addr add ${SERVICE6}/128 dev lo nodad
    iptables -t nat -A OUTPUT -p tcp -s ${CLIENT} -j REDIRECT --to-ports ${PROXY_PORT}
    ip6tables -t nat -A OUTPUT -p tcp -s ${CLIENT6} -j REDIRECT --to-ports ${PROXY_PORT6}
  `);
  besideEnvoy('redirected connections reach the listener of their destination, or the destination itself', meshed);
  besideEnvoy('the original_dst filter restores addresses without passing connections on', restored);
}

function ask(host: string, port: number, localAddress: string): Promise<string> {
  return text(connect({ host, port, localAddress }));
}

const ANY_HOST: Config = { name: 'any', type: 'ORIGINAL_DST', lb_policy: 'CLUSTER_PROVIDED', connect_timeout: '2s' };
const FORMAT = '%DOWNSTREAM_LOCAL_ADDRESS% %DOWNSTREAM_DIRECT_LOCAL_ADDRESS% %UPSTREAM_HOST%\n';

function at(address: string, port: number): Config {
  return { address: { socket_address: { address, port_value: port } } };
}

async function upstreams(t: Teardown) {
  const speaks = await startTcpUpstream(t, (socket) => socket.end(`from ${socket.localAddress}`), 0, '::');
  const web = await startUpstream(t, (_, response) => void response.end('web'), 0, '127.0.0.1');
  return { speaks: speaks.port, web: web.port };
}

async function meshed(t: Teardown & Tap, { command }: { command: string | undefined }): Promise<void> {
  const { speaks, web } = await upstreams(t);
  const log = join(tempDir(t), 'log');
  const baton = await startBaton(t, {
    command,
    args: ['-l', 'warning', '--concurrency', '2', '--file-flush-interval-msec', '20'],
    config: bootstrap({
      listeners: [
        {
          stat_prefix: 'outbound',
          ...tcpListener('outbound', PROXY_PORT, { cluster: 'any', access_log: [fileAccessLog(log, FORMAT)] }),
          ...at('0.0.0.0', PROXY_PORT),
          use_original_dst: true,
        },
        {
          stat_prefix: 'outbound6',
          ...tcpListener('outbound6', PROXY_PORT6, { cluster: 'any', access_log: [fileAccessLog(log, FORMAT)] }),
          ...at('::', PROXY_PORT6),
          use_original_dst: true,
        },
        {
          stat_prefix: 'exact',
          ...httpListener('exact', 80, managerOf([routeTo({ prefix: '/' }, 'web')])),
          ...at(SERVICE, 80),
          bind_to_port: false,
        },
        {
          stat_prefix: 'wildcard',
          ...httpListener('wildcard', 81, managerOf([routeTo({ prefix: '/' }, 'web')])),
          ...at('0.0.0.0', 81),
          deprecated_v1: { bind_to_port: false },
          listener_filters: [
            {
              name: 'envoy.filters.listener.http_inspector',
              typed_config: {
                '@type': 'type.googleapis.com/envoy.extensions.filters.listener.http_inspector.v3.HttpInspector',
              },
            },
          ],
        },
      ],
      clusters: [
        ANY_HOST,
        {
          name: 'web',
          type: 'STATIC',
          load_assignment: {
            cluster_name: 'web',
            endpoints: [{ lb_endpoints: [{ endpoint: at('127.0.0.1', web) }] }],
          },
        },
      ],
    }),
  });
  // A server that speaks first.
  t.equal(await ask(SERVICE, speaks, CLIENT), `from ::ffff:${SERVICE}`);
  t.equal(await ask(SERVICE6, speaks, CLIENT6), `from ${SERVICE6}`);
  for (const port of [80, 81]) {
    const answer = await httpRequest(port, '/', { host: SERVICE, localAddress: CLIENT });
    t.equal(answer.body, 'web', `port ${port}`);
  }
  await baton.waitForStats({
    'listener.exact.downstream_cx_total': 1,
    'listener.wildcard.downstream_cx_total': 1,
    'listener.outbound.downstream_cx_total': 1,
    'listener.outbound6.downstream_cx_total': 1,
    'cluster.any.membership_total': 2,
  });
  await waitFor(() => readFileSync(log, 'utf8').split('\n').length > 2);
  t.same(readFileSync(log, 'utf8').split('\n').slice(0, 2), [
    `${SERVICE}:${speaks} 127.0.0.1:${PROXY_PORT} ${SERVICE}:${speaks}`,
    `[${SERVICE6}]:${speaks} [::1]:${PROXY_PORT6} [${SERVICE6}]:${speaks}`,
  ]);
}

async function restored(t: Teardown & Tap, { command }: { command: string | undefined }): Promise<void> {
  const { speaks } = await upstreams(t);
  const chain = (match: Config, cluster: string) => {
    const { filter_chains } = tcpListener('x', 0, { cluster }) as { filter_chains: Config[] };
    return { ...filter_chains[0], filter_chain_match: match };
  };
  const baton = await startBaton(t, {
    command,
    args: ['-l', 'warning'],
    config: bootstrap({
      listeners: [
        {
          name: 'in',
          stat_prefix: 'in',
          ...at('0.0.0.0', PROXY_PORT),
          listener_filters: [
            {
              name: 'envoy.filters.listener.original_dst',
              typed_config: {
                '@type': 'type.googleapis.com/envoy.extensions.filters.listener.original_dst.v3.OriginalDst',
              },
            },
          ],
          filter_chains: [chain({ destination_port: speaks }, 'any'), chain({ destination_port: 9 }, 'none')],
        },
        {
          stat_prefix: 'other',
          ...tcpListener('other', speaks, { cluster: 'none' }),
          ...at(SERVICE, speaks),
          bind_to_port: false,
        },
      ],
      clusters: [ANY_HOST, { name: 'none', type: 'STATIC' }],
    }),
  });
  t.equal(await ask(SERVICE, speaks, CLIENT), `from ::ffff:${SERVICE}`);
  t.equal(await ask(SERVICE, 10, CLIENT), '');
  await baton.waitForStats({
    'listener.in.downstream_cx_total': 1,
    'listener.in.no_filter_chain_match': 1,
    'listener.other.downstream_cx_total': 0,
  });
}

type Tap = Pick<typeof t, 'equal' | 'same'>;
