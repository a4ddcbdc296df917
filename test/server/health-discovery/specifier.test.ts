import t from 'tap';
import { encodeJson, loadMessages } from '../../../src/config/schema/messages.js';
import { MAX_CLUSTERS, MAX_ENDPOINTS, readSpecifier } from '../../../src/server/health-discovery/specifier.js';

const SPECIFIER = 'envoy.service.health.v3.HealthCheckSpecifier';
const CLUSTER = 'envoy.config.cluster.v3.Cluster';
const types = loadMessages(SPECIFIER, CLUSTER);

function specifier(json: object) {
  return readSpecifier(Buffer.from(encodeJson(types[SPECIFIER], json)));
}

t.test('a cluster has all fields of its check', async (t) => {
  const address = { socket_address: { address: '127.0.0.1', port_value: 80 } };
  const endpoint = { address, health_check_config: { port_value: 81 } };
  const health_checks = [{ timeout: '1s', http_health_check: { path: '/' } }];
  const transport_socket_matches = [{ name: 'm', match: { a: [true] } }];
  const upstream_bind_config = { source_address: { address: '127.0.0.2', port_value: 0 } };
  const locality = { region: 'r', zone: 'z' };
  const { clusters, intervalMs } = specifier({
    interval: '1.5s',
    cluster_health_checks: [
      {
        cluster_name: 'ä',
        health_checks,
        locality_endpoints: [{ locality, endpoints: [endpoint, { address }] }, {}],
        transport_socket_matches,
        upstream_bind_config,
      },
    ],
  });
  t.equal(intervalMs, 1500);
  t.equal(clusters[0]!.name, 'ä');
  const expected = {
    name: 'ä',
    health_checks,
    transport_socket_matches,
    upstream_bind_config,
    load_assignment: {
      cluster_name: 'ä',
      endpoints: [{ locality, lb_endpoints: [{ endpoint }, { endpoint: { address } }] }, {}],
    },
  };
  const decoded = types[CLUSTER].decode(clusters[0]!.value);
  t.strictSame(decoded.toJSON(), types[CLUSTER].decode(encodeJson(types[CLUSTER], expected)).toJSON());
});

t.test('the interval has limits', async (t) => {
  t.equal(specifier({}).intervalMs, 1000);
  for (const [interval, ms] of [
    ['0s', 100],
    ['-1s', 100],
    ['0.1005s', 100.5],
    ['315576000000s', 2 ** 31 - 1],
  ] as const)
    t.equal(specifier({ interval }).intervalMs, ms);
});

t.test('the first cluster of a name counts', async (t) => {
  const named = (cluster_name: string, region: string) => ({
    cluster_name,
    locality_endpoints: [{ locality: { region } }],
  });
  const { clusters, repeated } = specifier({
    cluster_health_checks: [named('a', 'x'), named('b', 'x'), named('a', 'y')],
  });
  t.strictSame(
    clusters.map(({ name }) => name),
    ['a', 'b'],
  );
  t.strictSame(repeated, ['a']);
  t.match(types[CLUSTER].decode(clusters[0]!.value).toJSON(), {
    load_assignment: { endpoints: [{ locality: { region: 'x' } }] },
  });
});

t.test('what is too large or not a message is refused', async (t) => {
  const clusters = Buffer.from('0a00'.repeat(MAX_CLUSTERS + 1), 'hex');
  t.throws(() => readSpecifier(clusters), /more than 10000 clusters/);
  const endpoints = '1200'.repeat(2000);
  const group = `1aa01f${endpoints}`;
  const cluster = `0aa31f${group}`;
  t.equal(readSpecifier(Buffer.from(cluster, 'hex')).clusters.length, 1);
  t.throws(
    () => readSpecifier(Buffer.from(cluster.repeat(MAX_ENDPOINTS / 2000 + 1), 'hex')),
    /more than 100000 endpoints/,
  );
  for (const bytes of ['0a', '0aff', '0a0212ff', '00', '0c', '0b', '12020880', `${'0b'.repeat(200)}`])
    t.throws(() => readSpecifier(Buffer.from(bytes, 'hex')), Error, bytes);
  t.equal(readSpecifier(Buffer.from('0801', 'hex')).clusters.length, 0, 'a field of another type is unknown');
});
