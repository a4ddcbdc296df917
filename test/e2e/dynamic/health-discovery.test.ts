// Health discovery (HDS): the service says which hosts to check, and gets their health. The expected results are those of Envoy
// 1.40.

import t from 'tap';
import { encodeJson, loadMessages } from '../../../src/config/schema/messages.js';
import { Authority } from '../harness/certificates.js';
import { besideEnvoy, type ProxyProgram } from '../harness/envoy.js';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  HTTP2_CLUSTER,
  startBaton,
  startUpstream,
  staticCluster,
  type Teardown,
  waitFor,
} from '../harness/index.js';
import { clientTls, startSecureHost, trustedCa } from '../tls/contexts.js';
import { type StreamService, startStreamService } from './stream-service.js';

interface Health {
  readonly endpoint: { readonly address: { readonly socket_address: { readonly port_value: number } } };
  readonly health_status: string;
  readonly health_metadata?: object;
}

/** What a service receives. */
interface Received {
  readonly health_check_request?: { readonly node: Config; readonly capability: object };
  readonly endpoint_health_response?: {
    readonly endpoints_health?: readonly Health[];
    readonly cluster_endpoints_health?: readonly {
      readonly cluster_name: string;
      readonly locality_endpoints_health?: readonly {
        readonly locality: object;
        readonly endpoints_health: readonly Health[];
      }[];
    }[];
  };
}

interface Rig {
  readonly baton: BatonProcess;
  readonly service: StreamService<Received>;
}

const SPECIFIER = 'envoy.service.health.v3.HealthCheckSpecifier';
const UPSTREAM_TLS = 'envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext';
const INTERVAL = { nanos: 100_000_000 };
const TIMING = {
  timeout: { nanos: 300_000_000 },
  interval: { nanos: 50_000_000 },
  no_traffic_interval: { nanos: 50_000_000 },
  unhealthy_threshold: { value: 1 },
  healthy_threshold: { value: 1 },
};

async function start(t: Teardown, program: ProxyProgram): Promise<Rig> {
  const service = await startStreamService<Received>(
    t,
    'envoy.service.health.v3.HealthCheckRequestOrEndpointHealthResponse',
    SPECIFIER,
    { enums: true },
  );
  const baton = await startBaton(t, {
    ...program,
    args: ['--concurrency', '1'],
    config: bootstrap({
      listeners: [],
      clusters: [staticCluster('a', 1), staticCluster('hds', service.port, HTTP2_CLUSTER)],
      extra: {
        node: { id: 'n', cluster: 'c', locality: { zone: 'z' } },
        hds_config: {
          api_type: 'GRPC',
          transport_api_version: 'V3',
          set_node_on_first_message_only: true,
          grpc_services: [{ envoy_grpc: { cluster_name: 'hds' }, initial_metadata: [{ key: 'k', value: 'v' }] }],
        },
      },
    }),
  });
  await waitFor(() => service.received.length > 0);
  return { baton, service };
}

function httpCheck(path: string): Config {
  return { ...TIMING, http_health_check: { path } };
}

function endpoint(port: number, more: Config = {}): Config {
  return { address: { socket_address: { address: '127.0.0.1', port_value: port } }, ...more };
}

function cluster(name: string, checks: readonly Config[], endpoints: readonly Config[], more: Config = {}): Config {
  const locality_endpoints = [{ locality: { region: 'r' }, endpoints }];
  return { cluster_name: name, health_checks: checks, locality_endpoints, ...more };
}

/** Returns what the last report says about a cluster: status by position. */
function statuses({ received }: StreamService<Received>, name: string): string[] | undefined {
  const report = received.at(-1)?.endpoint_health_response;
  const found = report?.cluster_endpoints_health?.find(({ cluster_name }) => cluster_name === name);
  return found?.locality_endpoints_health?.flatMap(({ endpoints_health }) =>
    endpoints_health.map(({ health_status }) => health_status),
  );
}

async function expectStatuses(service: StreamService<Received>, name: string, expected: readonly string[]) {
  await waitFor(() => JSON.stringify(statuses(service, name)) === JSON.stringify(expected), {
    what: `${name}: ${expected}`,
  }).catch((error) => {
    throw new Error(`${error}, but ${statuses(service, name)}`);
  });
}

async function startHost(t: Teardown) {
  return startUpstream(t, (request, response) => {
    if (request.url === '/hang') return;
    response.statusCode = request.url === '/503' ? 503 : 200;
    if (request.url === '/degraded') response.setHeader('x-envoy-degraded', 'true');
    response.end();
  });
}

besideEnvoy('the service gets the health of the hosts that it names', async (t, program) => {
  const { baton, service } = await start(t, program);
  const host = await startHost(t);
  t.match(service.heads[0], {
    ':path': '/envoy.service.health.v3.HealthDiscoveryService/StreamHealthCheck',
    ':authority': 'hds',
    'content-type': 'application/grpc',
    k: 'v',
  });
  t.match(service.received[0]!.health_check_request, {
    node: { id: 'n', cluster: 'c', locality: { zone: 'z' } },
    capability: { health_check_protocols: ['HTTP', 'TCP'] },
  });
  const specifier = {
    interval: INTERVAL,
    cluster_health_checks: [
      cluster(
        'x',
        [httpCheck('/')],
        [endpoint(host.port), endpoint(1), endpoint(host.port, { health_check_config: { port_value: 1 } })],
      ),
      cluster('slow', [httpCheck('/hang')], [endpoint(host.port)]),
      cluster('failing', [httpCheck('/503')], [endpoint(host.port)]),
      cluster('tcp', [{ ...TIMING, tcp_health_check: {} }], [endpoint(host.port), endpoint(1)]),
      cluster('unchecked', [], [endpoint(host.port)]),
      cluster('degraded', [httpCheck('/degraded')], [endpoint(host.port)]),
    ],
  };
  service.send(specifier);
  await expectStatuses(service, 'x', ['HEALTHY', 'UNHEALTHY', 'UNHEALTHY']);
  await expectStatuses(service, 'slow', ['TIMEOUT']);
  await expectStatuses(service, 'failing', ['UNHEALTHY']);
  await expectStatuses(service, 'tcp', ['HEALTHY', 'UNHEALTHY']);
  await expectStatuses(service, 'unchecked', ['UNHEALTHY']);
  await baton.waitForStat('cluster.degraded.health_check.degraded', 1);
  const sent = service.received.length;
  await waitFor(() => service.received.length > sent + 1);
  await expectStatuses(service, 'degraded', ['UNHEALTHY']);
  const { cluster_endpoints_health: clusters, endpoints_health: all } =
    service.received.at(-1)!.endpoint_health_response!;
  const x = clusters!.find(({ cluster_name }) => cluster_name === 'x')!.locality_endpoints_health!;
  t.strictSame(x[0]!.locality, { region: 'r' });
  t.match(x[0]!.endpoints_health[0], {
    endpoint: { address: { socket_address: { address: '127.0.0.1', port_value: host.port } } },
    health_metadata: { fields: { http_status_code: { numberValue: 200 } } },
  });
  t.equal(x[0]!.endpoints_health[1]!.health_metadata ?? undefined, undefined);
  t.equal(all!.length, 9, 'the old list of all hosts');
  await baton.waitForStats({ 'hds_delegate.requests': 1, 'hds_delegate.updates': 1, 'hds_delegate.errors': 0 });
  service.send(specifier);
  await baton.waitForStats({ 'hds_delegate.requests': 2, 'hds_delegate.updates': 1 });
  const stats = (await baton.admin('/stats?filter=^cluster.x.health_check')).body;
  t.match(stats, /cluster\.x\.health_check\.healthy: 1\n/);
  t.notMatch(stats, /success: 0/);
});

besideEnvoy('a specifier replaces the previous one, unless it is invalid', async (t, program) => {
  const { baton, service } = await start(t, program);
  const host = await startHost(t);
  const send = (...clusters: Config[]) => service.send({ interval: INTERVAL, cluster_health_checks: clusters });
  send(cluster('x', [httpCheck('/')], [endpoint(host.port)]), cluster('y', [httpCheck('/')], [endpoint(host.port)]));
  await expectStatuses(service, 'y', ['HEALTHY']);
  send(cluster('x', [{ http_health_check: { path: '/' } }], [endpoint(host.port)]));
  await baton.waitForStat('hds_delegate.errors', 1);
  await expectStatuses(service, 'y', ['HEALTHY']);
  send(cluster('x', [httpCheck('/503')], [endpoint(host.port)]), cluster('x', [httpCheck('/')], []));
  await expectStatuses(service, 'x', ['UNHEALTHY']);
  t.equal(statuses(service, 'y'), undefined);
  service.send({ interval: INTERVAL });
  await waitFor(() => statuses(service, 'x') === undefined);
  await baton.waitForStats({ 'hds_delegate.updates': 3, 'hds_delegate.errors': 1 });
});

besideEnvoy('an ended stream is opened again', async (t, program) => {
  const { baton, service } = await start(t, program);
  const host = await startHost(t);
  const specifier = {
    interval: INTERVAL,
    cluster_health_checks: [cluster('x', [httpCheck('/')], [endpoint(host.port)])],
  };
  service.send(specifier);
  await expectStatuses(service, 'x', ['HEALTHY']);
  service.endStream();
  await baton.waitForStat('hds_delegate.errors', 1);
  await waitFor(() => service.heads.length === 2);
  await waitFor(() => service.received.at(-1)!.health_check_request !== undefined);
  service.send({ ...specifier, interval: { nanos: 150_000_000 } });
  await expectStatuses(service, 'x', ['HEALTHY']);
});

besideEnvoy('checks follow the specifiers', async (t, program) => {
  const { baton, service } = await start(t, program);

  await t.test('a service that sends specifiers more often than it requests reports gets them', async (t) => {
    const before = service.received.length;
    const host = await startHost(t);
    let sent = 0;
    const send = () =>
      service.send({
        interval: INTERVAL,
        cluster_health_checks: [cluster('x', [httpCheck(`/${sent++ % 2}`)], [endpoint(host.port)])],
      });
    const timer = setInterval(send, 20);
    t.teardown(() => clearInterval(timer));
    await waitFor(() => service.received.length > before + 2);
  });

  await t.test('checks of hosts that remain go on', async (t) => {
    const paths: string[] = [];
    const host = await startUpstream(t, (request, response) => {
      paths.push(request.url!);
      response.end();
    });
    const other = await startHost(t);
    const once = (path: string) => ({
      ...httpCheck(path),
      interval: { seconds: 60 },
      no_traffic_interval: { seconds: 60 },
    });
    const send = (path: string, ...ports: readonly number[]) =>
      service.send({
        interval: INTERVAL,
        cluster_health_checks: [
          cluster(
            'kept',
            [once(path)],
            ports.map((port) => endpoint(port)),
          ),
        ],
      });
    send('/a', host.port);
    await expectStatuses(service, 'kept', ['HEALTHY']);
    send('/a', other.port, host.port);
    await expectStatuses(service, 'kept', ['HEALTHY', 'HEALTHY']);
    send('/a', host.port);
    await expectStatuses(service, 'kept', ['HEALTHY']);
    t.strictSame(paths, ['/a']);
    send('/b', host.port);
    await waitFor(() => paths.includes('/b'));
    t.strictSame(paths, ['/a', '/b']);
  });

  await t.test('they use the transport sockets that their criteria select', async (t) => {
    const root = await Authority.create();
    const stranger = await Authority.create();
    const secure = await startSecureHost(t, await root.issue({ names: ['server.test'] }), (_, response) =>
      response.end(),
    );
    const check = {
      ...{
        timeout: '0.3s',
        interval: '0.05s',
        no_traffic_interval: '0.05s',
        unhealthy_threshold: 1,
        healthy_threshold: 1,
      },
      http_health_check: { path: '/' },
    };
    const trusting = (authority: Authority, name: string) => ({
      name,
      match: { [name]: true },
      transport_socket: clientTls({ validation_context: trustedCa(authority) }, { sni: 'server.test' }),
    });
    const checked = (cluster_name: string, criteria: Config) => ({
      cluster_name,
      health_checks: [{ ...check, ...criteria }],
      locality_endpoints: [{ endpoints: [endpoint(secure.port)] }],
      transport_socket_matches: [trusting(root, 'root'), trusting(stranger, 'stranger')],
    });
    const types = loadMessages(SPECIFIER, UPSTREAM_TLS);
    service.sendBytes(
      encodeJson(types[SPECIFIER], {
        interval: '0.1s',
        cluster_health_checks: [
          checked('plain', {}),
          checked('trusted', { transport_socket_match_criteria: { root: true } }),
          checked('refused', { transport_socket_match_criteria: { stranger: true } }),
        ],
      }),
    );
    await expectStatuses(service, 'trusted', ['HEALTHY']);
    await expectStatuses(service, 'refused', ['UNHEALTHY']);
    await expectStatuses(service, 'plain', ['UNHEALTHY']);
    await waitFor(async () => (await baton.stat('cluster.trusted.ssl.handshake'))! > 0);
    await waitFor(async () => (await baton.stat('cluster.refused.ssl.fail_verify_error'))! > 0);
    t.ok((await baton.stat('cluster.trusted.root.total_match_count'))! > 0);
  });
});

t.test('what a hostile service sends is bounded', async (t) => {
  const { baton, service } = await start(t, { command: undefined });
  const host = await startHost(t);
  const errors = async (count: number) => baton.waitForStat('hds_delegate.errors', count);
  service.send({
    cluster_health_checks: [
      cluster('x', [httpCheck('/')], [{ address: { socket_address: { address: 'localhost', port_value: 1 } } }]),
    ],
  });
  await errors(1);
  t.match(baton.stderr, /localhost/);
  service.send({ cluster_health_checks: [cluster('', [httpCheck('/')], [endpoint(host.port)])] });
  await errors(2);
  service.send({ cluster_health_checks: Array.from({ length: 10_001 }, (_, index) => cluster(`c${index}`, [], [])) });
  await errors(3);
  t.match(baton.stderr, /more than 10000 clusters/);
  service.send({
    cluster_health_checks: [cluster('x', [httpCheck('/'), httpCheck('/')], [endpoint(host.port)])],
  });
  await errors(4);
  for (let count = 0; count < 200; count++) {
    const clusters = [cluster('x', [httpCheck(`/${count}`)], [endpoint(host.port)])];
    service.send({ interval: {}, cluster_health_checks: clusters });
  }
  await expectStatuses(service, 'x', ['HEALTHY']);
  await baton.waitForStat('hds_delegate.requests', 204);
  const before = service.received.length;
  t.ok(before < 100, 'an interval of nothing is a longer one');
  service.sendBytes(Buffer.from('0aff', 'hex'));
  await errors(5);
  const again = Array.from({ length: 1000 }, () => cluster('again', [], []));
  service.send({ interval: INTERVAL, cluster_health_checks: again });
  await waitFor(() => baton.stderr.includes("the cluster 'again' again"));
  t.equal(baton.stderr.split("has the cluster 'again' again").length, 2, 'one line');
  const disabled = endpoint(1, { health_check_config: { disable_active_health_check: true } });
  const z = cluster('z', [httpCheck('/')], [endpoint(host.port), disabled]);
  service.send({ interval: INTERVAL, cluster_health_checks: [z] });
  await expectStatuses(service, 'z', ['HEALTHY', 'HEALTHY']);
  t.match(await baton.admin('/ready'), { status: 200 });
});
