// Health checks over HTTP/2 and by the health protocol of gRPC, in clear text and over TLS.

import {
  createSecureServer,
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import t from 'tap';
import { Authority } from '../harness/certificates.js';
import { besideEnvoy } from '../harness/envoy.js';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  clusterHttpOptions,
  HTTP2_CLUSTER,
  startBaton,
  staticCluster,
  type Teardown,
  waitFor,
} from '../harness/index.js';
import { clientTls } from '../tls/contexts.js';

const OK = { ':status': 200, 'content-type': 'application/grpc' };
const SERVING = message(8, 1);

interface Check {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

type Answer = (stream: ServerHttp2Stream) => void;

/** Returns a gRPC message. */
function message(...bytes: number[]): Buffer {
  return Buffer.from([0, 0, 0, 0, bytes.length, ...bytes]);
}

function answering(body: Buffer, trailers: Record<string, string>, head: OutgoingHttpHeaders = OK): Answer {
  return (stream) => {
    stream.respond(head, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers(trailers));
    stream.end(body);
  };
}

const only =
  (head: OutgoingHttpHeaders): Answer =>
  (stream) =>
    stream.respond({ ...OK, ...head }, { endStream: true });

async function startHost(t: Teardown, answer: Answer, checks: Check[] = [], server: Http2Server = createServer()) {
  server.on('session', (session) => {
    session.on('error', () => {});
    t.teardown(() => session.destroy());
  });
  server.on('stream', (stream, headers) => {
    let body = '';
    stream.setEncoding('hex').on('data', (text: string) => {
      body += text;
    });
    stream.on('error', () => {});
    stream.on('end', () => {
      checks.push({ headers, body });
      answer(stream);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => void server.close());
  return (server.address() as AddressInfo).port;
}

const checked = (check: Config, more: Config = {}): Config => ({
  ...more,
  health_checks: [
    {
      timeout: '3s',
      interval: '60s',
      no_traffic_interval: '60s',
      unhealthy_threshold: 1,
      healthy_threshold: 1,
      ...check,
    },
  ],
});

/** Waits until each cluster was checked. Returns the health flags of its host, and whether the failure counts as one of the network. */
async function outcomes(baton: BatonProcess, names: readonly string[]): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const name of names) {
    await waitFor(
      async () => {
        const { failure = 0, success = 0 } = await baton.stats(`cluster.${name}.health_check.`);
        return failure + success > 0;
      },
      { what: `a check of ${name}` },
    );
    const { body } = await baton.admin('/clusters');
    const flags = new RegExp(`^${name}::.*::health_flags::(.*)$`, 'm').exec(body)?.[1];
    const { network_failure: isNetwork } = await baton.stats(`cluster.${name}.health_check.`);
    found[name] = `${flags}${isNetwork ? ', network' : ''}`;
  }
  return found;
}

const FAILED = '/failed_active_hc';

/** Returns the header fields of the first check. */
function fieldsOf(checks: readonly Check[] | undefined): object {
  return Object.fromEntries(Object.entries(checks![0]!.headers));
}

besideEnvoy('gRPC: only SERVING with status 0 is healthy', async (t, program) => {
  const rows: readonly [name: string, answer: Answer, expected: string][] = [
    ['serving', answering(SERVING, { 'grpc-status': '0' }), 'healthy'],
    ['degraded', answering(SERVING, { 'grpc-status': '0' }, { ...OK, 'x-envoy-degraded': '1' }), 'healthy'],
    ['not-serving', answering(message(8, 2), { 'grpc-status': '0' }), FAILED],
    ['unknown', answering(message(8, 3), { 'grpc-status': '0' }), FAILED],
    ['not-found', only({ 'grpc-status': '5' }), FAILED],
    ['unimplemented', only({ 'grpc-status': '12' }), FAILED],
    ['unavailable', only({ 'grpc-status': '14' }), FAILED],
    ['late-error', answering(SERVING, { 'grpc-status': '13' }), FAILED],
    ['http', only({ ':status': 503 }), FAILED],
    ['content', answering(SERVING, { 'grpc-status': '0' }, { ':status': 200, 'content-type': 'text/plain' }), FAILED],
    ['empty', answering(Buffer.alloc(0), { 'grpc-status': '0' }), FAILED],
    ['garbage', answering(message(255, 255), { 'grpc-status': '0' }), FAILED],
    ['two', answering(Buffer.concat([SERVING, SERVING]), { 'grpc-status': '0' }), FAILED],
    [
      'no-trailers',
      (stream) => {
        stream.respond(OK);
        stream.end(SERVING);
      },
      FAILED,
    ],
    ['reset', (stream) => stream.close(2), `${FAILED}, network`],
    ['silent', () => {}, `${FAILED}/active_hc_timeout, network`],
  ];
  const clusters: Config[] = [];
  for (const [name, answer] of rows) {
    clusters.push(staticCluster(name, await startHost(t, answer), checked({ grpc_health_check: {} }, HTTP2_CLUSTER)));
  }
  const baton = await startBaton(t, { ...program, config: bootstrap({ listeners: [], clusters }) });
  const names = rows.map(([name]) => name);
  t.same(await outcomes(baton, names), Object.fromEntries(rows.map(([name, , expected]) => [name, expected])));
});

besideEnvoy('checks are sent as configured', async (t, program) => {
  const requests: Record<string, Check[]> = { plain: [], full: [], http: [] };
  const healthy = answering(SERVING, { 'grpc-status': '0' });
  const ok: Answer = (stream) => {
    stream.respond({ ':status': 200 });
    stream.end('x');
  };
  const clusters = [
    staticCluster(
      'plain',
      await startHost(t, healthy, requests['plain']),
      checked({ grpc_health_check: {} }, HTTP2_CLUSTER),
    ),
    staticCluster(
      'full',
      await startHost(t, healthy, requests['full']),
      checked(
        {
          grpc_health_check: {
            service_name: 'my.Service',
            authority: 'checks.test',
            initial_metadata: [{ header: { key: 'x-meta', value: 'm' } }],
          },
        },
        HTTP2_CLUSTER,
      ),
    ),
    staticCluster(
      'http',
      await startHost(t, ok, requests['http']),
      checked({ http_health_check: { path: '/check?x=1', host: 'http.test', codec_client_type: 'HTTP2' } }),
    ),
  ];
  const baton = await startBaton(t, { ...program, config: bootstrap({ listeners: [], clusters }) });
  t.same(await outcomes(baton, ['plain', 'full', 'http']), { plain: 'healthy', full: 'healthy', http: 'healthy' });
  const grpc = {
    ':method': 'POST',
    ':path': '/grpc.health.v1.Health/Check',
    ':scheme': 'http',
    te: 'trailers',
    'content-type': 'application/grpc',
    'user-agent': 'Envoy/HC',
    'grpc-timeout': '3000m',
  };
  t.same(fieldsOf(requests['plain']), { ...grpc, ':authority': 'plain' });
  t.equal(requests['plain']![0]!.body, '0000000000');
  t.same(fieldsOf(requests['full']), { ...grpc, ':authority': 'checks.test', 'x-meta': 'm' });
  t.equal(requests['full']![0]!.body, `000000000c0a0a${Buffer.from('my.Service').toString('hex')}`);
  t.same(fieldsOf(requests['http']), {
    ':method': 'GET',
    ':path': '/check?x=1',
    ':scheme': 'http',
    ':authority': 'http.test',
    'user-agent': 'Envoy/HC',
  });
});

const root = await Authority.create();
const server = await root.issue({ names: ['server.test'] });

besideEnvoy(
  'over TLS, checks offer what tls_options list, and use the transport socket of their own criteria',
  async (t, program) => {
    const offers: string[] = [];
    const names: string[] = [];
    const secure = createSecureServer({
      cert: server.chain,
      key: server.key,
      ALPNCallback: ({ protocols, servername }) => {
        offers.push(protocols.join());
        names.push(servername);
        return protocols.find((name) => name === 'h2' || name === 'y');
      },
    });
    const checks: Check[] = [];
    const port = await startHost(
      t,
      answering(SERVING, { 'grpc-status': '0' }),
      checks,
      secure as unknown as Http2Server,
    );
    const tls = (sni: string, alpn: string[]) => clientTls({ alpn_protocols: alpn }, { sni });
    const baton = await startBaton(t, {
      ...program,
      config: bootstrap({
        listeners: [],
        clusters: [
          staticCluster(
            'own',
            port,
            checked(
              { grpc_health_check: {}, tls_options: { alpn_protocols: ['h2', 'x'] } },
              { transport_socket: tls('own.test', ['other']), ...HTTP2_CLUSTER },
            ),
          ),
          staticCluster(
            'tcp',
            port,
            checked(
              { tcp_health_check: {}, tls_options: { alpn_protocols: ['y'] } },
              { transport_socket: tls('tcp.test', ['other']) },
            ),
          ),
          staticCluster(
            'matched',
            port,
            checked(
              { grpc_health_check: {}, transport_socket_match_criteria: { check: true } },
              {
                transport_socket: tls('own.test', ['other']),
                transport_socket_matches: [
                  { name: 'checks', match: { check: true }, transport_socket: tls('checks.test', ['h2']) },
                ],
                ...HTTP2_CLUSTER,
              },
            ),
          ),
        ],
      }),
    });
    t.same(await outcomes(baton, ['own', 'tcp', 'matched']), { own: 'healthy', tcp: 'healthy', matched: 'healthy' });
    t.same(offers.sort(), ['h2', 'h2,x', 'y']);
    t.same(names.sort(), ['checks.test', 'own.test', 'tcp.test']);
    t.equal(checks[0]!.headers[':scheme'], 'https');
    await baton.waitForStats({
      'cluster.matched.checks.total_match_count': 1,
      'cluster.matched.default.total_match_count': 1,
    });
  },
);

t.test('a connection that the host ends between checks is replaced without a failure', async (t) => {
  let connections = 0;
  const server = createServer();
  server.on('session', () => connections++);
  const port = await startHost(
    t,
    (stream) => {
      answering(SERVING, { 'grpc-status': '0' })(stream);
      stream.session?.close();
    },
    [],
    server,
  );
  const check = { grpc_health_check: {}, interval: '0.02s', no_traffic_interval: '0.02s' };
  const baton = await startBaton(t, {
    config: bootstrap({ listeners: [], clusters: [staticCluster('a', port, checked(check, HTTP2_CLUSTER))] }),
  });
  await waitFor(() => connections > 5, { what: 'several connections' });
  t.equal((await baton.stats('cluster.a.health_check.'))['failure'], 0);
});

t.test('gRPC checks of hosts without HTTP/2 are refused', async (t) => {
  const options = clusterHttpOptions({ explicit_http_config: { http_protocol_options: {} } });
  const clusters = [staticCluster('a', 1, checked({ grpc_health_check: {} }, options))];
  await t.rejects(startBaton(t, { config: bootstrap({ listeners: [], clusters }) }), {
    message: /a cluster must support HTTP\/2 for gRPC healthchecking/,
  });
});
