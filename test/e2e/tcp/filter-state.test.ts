// The network filter set_filter_state: objects of connections in logs, requests and filters. All results are Envoy's.

import t from 'tap';
import { Authority } from '../harness/certificates.js';
import { besideEnvoy, type ProxyProgram } from '../harness/envoy.js';
import {
  bootstrap,
  type Config,
  fileAccessLog,
  httpRequest,
  logLines,
  ROUTER_FILTER,
  startBaton,
  startUpstream,
  staticCluster,
  type Teardown,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { httpsGet, serverTls } from '../tls/contexts.js';

const NETWORK = 'type.googleapis.com/envoy.extensions.filters.network';
const HTTP_FILTER = 'type.googleapis.com/envoy.extensions.filters.http.set_filter_state.v3.Config';

const value = (object_key: string, text: string, more: Config = {}) => ({
  object_key,
  factory_key: 'envoy.string',
  format_string: { text_format_source: { inline_string: text } },
  ...more,
});

const FIELDS = ['new', 'empty', 'twice', 'tls', 'data'].map((key) => `%FILTER_STATE(${key}:PLAIN)%`).join('|');

const SET = {
  on_new_connection: [
    value('new', '%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%'),
    value('empty', '', { skip_if_empty: true }),
    value('twice', 'first'),
    value('twice', 'second'),
  ],
  on_downstream_tls_handshake: [value('tls', '%DOWNSTREAM_TLS_VERSION%')],
  on_downstream_data: [value('data', '%FILTER_STATE(new:PLAIN)% has sent')],
};

const setState = (config: Config) => ({
  name: 'state',
  typed_config: { '@type': `${NETWORK}.set_filter_state.v3.Config`, ...config },
});

function tcpProxy(name: string, log: string): Config {
  const access_log = [fileAccessLog(log, `${name} %UPSTREAM_CLUSTER% ${FIELDS}\n`)];
  const typed_config = { '@type': `${NETWORK}.tcp_proxy.v3.TcpProxy`, stat_prefix: name, cluster: 'host', access_log };
  return { name: 'tcp', typed_config };
}

function http(name: string, log: string, filters: readonly Config[] = []): Config {
  const route = { match: { prefix: '/' }, direct_response: { status: 200 } };
  const typed_config = {
    '@type': `${NETWORK}.http_connection_manager.v3.HttpConnectionManager`,
    stat_prefix: name,
    access_log: [fileAccessLog(log, `${name} ${FIELDS}\n`)],
    route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes: [route] }] },
    http_filters: [...filters, ROUTER_FILTER],
  };
  return { name: 'http', typed_config };
}

async function start(
  t: Teardown,
  program: ProxyProgram,
  chains: (log: string) => Readonly<Record<string, { readonly filters: Config[]; readonly transport_socket?: Config }>>,
) {
  const log = `${tempDir(t)}/log`;
  const host = await startUpstream(t, (_request, response) => response.end('host'));
  const baton = await startBaton(t, {
    ...program,
    args: ['--file-flush-interval-msec', '50'],
    config: bootstrap({
      listeners: Object.entries(chains(log)).map(([name, chain]) => ({
        name,
        address: { socket_address: { address: '127.0.0.1', port_value: 0 } },
        filter_chains: [chain],
      })),
      clusters: [staticCluster('host', host.port), staticCluster('other', host.port)],
    }),
  });
  return { baton, log, port: (name: string) => baton.listenerPort(name) };
}

besideEnvoy('objects of a connection are in the logs of the connection and its requests', async (t, program) => {
  const authority = await Authority.create();
  const transport_socket = serverTls([await authority.issue()]);
  const { log, port } = await start(t, program, (log) => ({
    tcp: { filters: [setState(SET), tcpProxy('tcp', log)] },
    http: { filters: [setState(SET), http('http', log)] },
    https: { filters: [setState(SET), http('https', log)], transport_socket },
    own: {
      filters: [
        setState(SET),
        http('own', log, [
          {
            name: 'state',
            typed_config: {
              '@type': HTTP_FILTER,
              on_request_headers: [value('empty', 'of the request'), value('data', '%FILTER_STATE(twice:PLAIN)% seen')],
            },
          },
        ]),
      ],
    },
  }));
  for (const name of ['tcp', 'http'] as const) await httpRequest(await port(name), '/');
  await httpsGet(await port('https'), { rejectUnauthorized: false });
  await httpRequest(await port('own'), '/');
  const lines = await waitFor(() => (logLines(log).length === 4 ? logLines(log).sort() : undefined));
  t.same(lines, [
    'http 127.0.0.1|-|second|-|127.0.0.1 has sent',
    'https 127.0.0.1|-|second|TLSv1.3|127.0.0.1 has sent',
    'own 127.0.0.1|of the request|second|-|127.0.0.1 has sent',
    'tcp host 127.0.0.1|-|second|-|127.0.0.1 has sent',
  ]);
});

besideEnvoy('an object selects the cluster of the TCP proxy', async (t, program) => {
  const cluster = {
    object_key: 'envoy.tcp_proxy.cluster',
    format_string: { text_format_source: { inline_string: 'other' } },
  };
  const { log, port } = await start(t, program, (log) => ({
    main: { filters: [setState({ on_new_connection: [cluster] }), tcpProxy('main', log)] },
  }));
  t.equal((await httpRequest(await port('main'), '/')).status, 200);
  const lines = await waitFor(() => (logLines(log).length === 1 ? logLines(log) : undefined));
  t.match(lines[0], /^main other /);
});

t.test('an object of an unknown kind is refused', async (t) => {
  const unknown = { object_key: 'a', format_string: { text_format_source: { inline_string: 'b' } } };
  const listener = {
    name: 'main',
    address: { socket_address: { address: '127.0.0.1', port_value: 0 } },
    filter_chains: [{ filters: [setState({ on_downstream_data: [unknown] }), tcpProxy('main', '/dev/null')] }],
  };
  const config = bootstrap({ listeners: [listener], clusters: [staticCluster('host', 1)] });
  const baton = await startBaton(t, { config, wait: 'spawned' });
  t.not((await baton.exited).code, 0);
  t.match(baton.stderr, /on_downstream_data\[0\]\.object_key: 'a' is no kind of object/);
});
