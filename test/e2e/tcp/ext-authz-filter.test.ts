// The network filter ext_authz: a service decides about connections. The expected results are those of Envoy 1.40.

import { createServer, type ServerHttp2Session } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { encodeJson, loadMessages } from '../../../src/config/schema/messages.js';
import { framed, MessageReader } from '../../../src/grpc/message-reader.js';
import { besideEnvoy, type ProxyProgram } from '../harness/envoy.js';
import {
  bootstrap,
  type Config,
  connectRaw,
  fileAccessLog,
  HTTP2_CLUSTER,
  httpListener,
  httpRequest,
  logLines,
  loopback,
  ROUTER_FILTER,
  startBaton,
  startTcpUpstream,
  staticCluster,
  type Teardown,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { openStream } from './stream.js';

const NETWORK = 'type.googleapis.com/envoy.extensions.filters.network';
const QUESTION = 'envoy.service.auth.v3.CheckRequest';
const ANSWER = 'envoy.service.auth.v3.CheckResponse';
const types = loadMessages(QUESTION, ANSWER);
const ANSWERS: { readonly [mode: string]: object } = {
  ok: { status: { code: 0 }, dynamic_metadata: { user: 'me' } },
  denied: { status: { code: 7 }, dynamic_metadata: { user: 'you' } },
  erring: { status: { code: 13 }, error_response: { status: { code: 'BadGateway' } } },
};

/** A service whose answers follow `mode`; `failing`: its calls fail; `silent`: they have no end. */
async function startService(t: Teardown) {
  const service = { port: 0, mode: 'ok', questions: [] as object[] };
  const server = createServer();
  const sessions = new Set<ServerHttp2Session>();
  server.on('session', (session) => sessions.add(session));
  server.on('stream', (stream) => {
    const reader = new MessageReader(2 ** 20);
    stream.on('error', () => {});
    stream.on('data', (bytes: Buffer) => reader.push(bytes));
    stream.on('end', () => {
      service.questions.push(types[QUESTION].toObject(types[QUESTION].decode(reader.next() as Buffer)));
      if (service.mode === 'silent') return;
      const answer = ANSWERS[service.mode];
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': answer === undefined ? '13' : '0' }));
      stream.end(answer === undefined ? '' : framed(encodeJson(types[ANSWER], answer)));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    for (const session of sessions) session.destroy();
    server.close();
  });
  service.port = (server.address() as AddressInfo).port;
  return service;
}

function authz(stat_prefix: string, fields: Config = {}): Config {
  return {
    name: 'authz',
    typed_config: {
      '@type': `${NETWORK}.ext_authz.v3.ExtAuthz`,
      stat_prefix,
      transport_api_version: 'V3',
      grpc_service: { envoy_grpc: { cluster_name: 'authz' }, timeout: '10s' },
      ...fields,
    },
  };
}

const value = { string_match: { exact: 'b' } };
/** Denies the connections of a user that the service names. */
const GUARD: Config = {
  name: 'guard',
  typed_config: {
    '@type': `${NETWORK}.rbac.v3.RBAC`,
    stat_prefix: 'guard',
    rules: {
      action: 'DENY',
      policies: {
        me: {
          permissions: [{ any: true }],
          principals: [
            {
              metadata: {
                filter: 'envoy.filters.network.ext_authz',
                path: [{ key: 'user' }],
                value: { string_match: { exact: 'me' } },
              },
            },
          ],
        },
      },
    },
  },
};
const LISTENERS: Readonly<Record<string, Config>> = {
  closed: authz('closed'),
  open: authz('open', { failure_mode_allow: true }),
  shadow: authz('shadow', { shadow_mode: true }),
  told: authz('told', { include_tls_session: true, bootstrap_metadata_labels_key: 'labels' }),
  off: authz('off', { filter_enabled_metadata: { filter: 'ns', path: [{ key: 'a' }], value } }),
};

const NAMESPACE = 'envoy.filters.network.ext_authz';
const ANSWERED: Config = { match: { prefix: '/' }, direct_response: { status: 200 } };
const HTTP_AUTHZ: Config = {
  name: 'http-authz',
  typed_config: {
    '@type': 'type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz',
    transport_api_version: 'V3',
    grpc_service: { envoy_grpc: { cluster_name: 'authz' }, timeout: '10s' },
    metadata_context_namespaces: [NAMESPACE],
  },
};
const SCRIPT: Config = {
  name: 'script',
  typed_config: {
    '@type': 'type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua',
    default_source_code: {
      inline_string: `function envoy_on_request(handle)
        local metadata = handle:connectionStreamInfo():dynamicMetadata()
        handle:respond({[":status"] = "200"}, metadata:get("${NAMESPACE}")["user"])
      end`,
    },
  },
};

async function start(t: Teardown, program: ProxyProgram) {
  const service = await startService(t);
  const host = await startTcpUpstream(t, (socket) => socket.on('data', () => socket.end('served')));
  const log = `${tempDir(t)}/log`;
  const format =
    '%RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS% %DOWNSTREAM_LOCAL_CLOSE_REASON% %DYNAMIC_METADATA(envoy.filters.network.ext_authz:user)%\n';
  const proxy = {
    name: 'tcp',
    typed_config: { '@type': `${NETWORK}.tcp_proxy.v3.TcpProxy`, stat_prefix: 'tcp', cluster: 'host' },
  };
  const loggedProxy = {
    ...proxy,
    typed_config: { ...proxy.typed_config, access_log: [fileAccessLog(log, format)] },
  };
  const manager = httpListener('web', 0, {
    route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes: [ANSWERED] }] },
    http_filters: [HTTP_AUTHZ, SCRIPT, ROUTER_FILTER],
  });
  const [chain] = manager['filter_chains'] as { filters: Config[] }[];
  const web = { ...manager, filter_chains: [{ filters: [authz('web'), ...chain!.filters] }] };
  const baton = await startBaton(t, {
    ...program,
    args: ['--file-flush-interval-msec', '20'],
    config: bootstrap({
      listeners: [
        ...Object.entries(LISTENERS).map(([name, filter]) => ({
          name,
          address: loopback(0),
          access_log: [fileAccessLog(log, format)],
          filter_chains: [{ filters: [filter, proxy] }],
        })),
        ...[[authz('logged')], [authz('guarded'), GUARD]].map((filters) => ({
          name: (filters[0]!['typed_config'] as Config)['stat_prefix'],
          address: loopback(0),
          filter_chains: [{ filters: [...filters, loggedProxy] }],
        })),
        web,
      ],
      clusters: [staticCluster('host', host.port), staticCluster('authz', service.port, HTTP2_CLUSTER)],
      extra: { node: { id: 'n', cluster: 'c', metadata: { labels: { x: 'y' } } } },
    }),
  });
  let lines = 0;
  /** Returns what the client receives, and the line of its connection. */
  const connect = async (listener: string, mode = 'ok') => {
    service.mode = mode;
    const connection = await connectRaw(t, await baton.listenerPort(listener));
    connection.write('hi');
    const { text } = await connection.readToEnd();
    connection.destroy();
    lines++;
    return [text, await waitFor(() => logLines(log)[lines - 1], { what: 'a line' })];
  };
  return { baton, connect, service };
}

besideEnvoy('a connection is served or closed as the service says', async (t, program) => {
  const { baton, connect, service } = await start(t, program);
  const line = (user: string) => new RegExp(`^- - \\S+ ${user}$`);
  t.match(await connect('closed'), ['served', line('me')]);
  t.same(await connect('closed', 'denied'), ['', 'UAEX ext_authz_denied ext_authz_close you']);
  t.same(await connect('closed', 'failing'), ['', 'UAEX ext_authz_error ext_authz_close -']);
  t.same(await connect('closed', 'erring'), ['', 'UAEX ext_authz_error ext_authz_close -']);
  t.same(await connect('open', 'denied'), ['', 'UAEX ext_authz_denied ext_authz_close you']);
  t.match(await connect('open', 'failing'), ['served', line('-')]);
  t.match(await connect('shadow', 'denied'), ['served', line('you')]);
  t.match(await connect('shadow', 'failing'), ['served', line('-')]);
  t.match(await connect('off', 'denied'), ['served', line('-')]);
  t.match(await connect('logged'), ['served', line('me')], 'in the log of the proxy');
  t.same(await connect('logged', 'denied'), ['', 'UAEX ext_authz_denied ext_authz_close you']);
  t.match(await connect('guarded'), ['', / me$/], 'a filter after it reads the metadata');
  service.questions.length = 0;
  t.equal((await httpRequest(await baton.listenerPort('web'), '/')).body, 'me', 'a script reads it');
  t.match(
    service.questions[1],
    {
      attributes: {
        metadata_context: { filter_metadata: { [NAMESPACE]: { fields: { user: { stringValue: 'me' } } } } },
      },
    },
    'the service gets it with requests',
  );
  service.questions.length = 0;
  t.match(await connect('told'), ['served', line('me')]);
  t.match(service.questions, [
    {
      attributes: {
        source: { address: { socket_address: { address: '127.0.0.1' } } },
        destination: { address: { socket_address: { address: '127.0.0.1' } }, labels: { x: 'y' } },
        metadata_context: {},
        tls_session: {},
      },
    },
  ]);
  const none = { total: 1, ok: 0, denied: 0, error: 0, failure_mode_allowed: 0, disabled: 0, cx_closed: 0, active: 0 };
  const stats = {
    closed: { ...none, total: 4, ok: 1, denied: 1, error: 2, cx_closed: 3 },
    open: { ...none, total: 2, denied: 1, error: 1, failure_mode_allowed: 1, cx_closed: 1 },
    shadow: { ...none, total: 2, denied: 1, error: 1 },
  };
  for (const [name, counts] of Object.entries(stats)) t.same(await baton.stats(`ext_authz.${name}.`), counts, name);

  service.mode = 'silent';
  const client = await openStream(t, await baton.listenerPort('told'));
  await client.write('hi');
  await baton.waitForStats({ 'ext_authz.told.active': 1 });
  client.reset();
  await baton.waitForStats({
    'ext_authz.told.active': 0,
    'ext_authz.told.error': 0,
    'cluster.authz.upstream_rq_active': 0,
  });
});
