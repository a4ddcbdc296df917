// The names of stats before any traffic are those of Envoy 1.40, for a bootstrap with most of what Baton implements: alerts and
// dashboards find what they expect, with the value 0.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { parse } from 'yaml';
import { type Config, startBaton, tempDir, waitFor } from '../../harness/index.js';

const FILES: Readonly<Record<string, object[]>> = {
  rds: [
    {
      '@type': 'type.googleapis.com/envoy.config.route.v3.RouteConfiguration',
      name: 'routes',
      virtual_hosts: [
        { name: 'all', domains: ['*'], routes: [{ match: { prefix: '/' }, direct_response: { status: 200 } }] },
      ],
    },
  ],
  eds: [
    {
      '@type': 'type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment',
      cluster_name: 'svc',
      endpoints: [
        { lb_endpoints: [{ endpoint: { address: { socket_address: { address: '127.0.0.1', port_value: 9 } } } }] },
      ],
    },
  ],
  cds: [],
  lds: [],
};

/** Stats of Envoy that Baton does not have: Baton has no such part. */
const ABSENT = [
  // Requests of Envoy's own HTTP client have a router; Baton's have none.
  /^http\.async-client\./,
  'dns.cares.reinits',
  'envoy.overload_actions.reset_high_memory_stream.count',
  'overload.refresh_interval_delay',
  'server.envoy_notifications',
];
/** Stats of Baton that Envoy does not have, or only after traffic. */
const OWN = [
  /^server\.worker_\d+\.buffer_memory_/,
  /^cluster\.[^.]+\.http1\./,
  /^http\.admin\.tracing\./,
  // Of Envoy's they are there after the first HTTP/2 connection.
  /^http2\./,
  /^listener\.admin\.(downstream_cx_evicted|extension_config_missing|network_extension_config_missing)$/,
  'filesystem.write_dropped',
  'server.optional_filters_left_out',
  'server.uncaught_exceptions',
];

const source = (name: string): string =>
  readFileSync(new URL(`../../../../../test/e2e/admin/stats/${name}`, import.meta.url), 'utf8');
const isOneOf = (rules: readonly (string | RegExp)[], name: string): boolean =>
  rules.some((rule) => (typeof rule === 'string' ? rule === name : rule.test(name)));

const directory = tempDir(t);
for (const [name, resources] of Object.entries(FILES))
  writeFileSync(join(directory, `${name}.yaml`), JSON.stringify({ version_info: 'v1', resources }));
const config = parse(source('envoy-names.yaml').replaceAll('@DIR@', directory)) as Config;
const baton = await startBaton(t, { config, args: ['--concurrency', '1'] });

async function stats(): Promise<Map<string, string>> {
  const { body } = await baton.admin('/stats');
  const lines = body.split('\n').filter((line) => line.includes(': '));
  return new Map(lines.map((line) => line.split(': ', 2) as [string, string]));
}

t.test('the names are those of Envoy', async (t) => {
  const expected = source('envoy-names.txt').trim().split('\n');
  const missing = await waitFor(async () => {
    const names = await stats();
    const left = expected.filter((name) => !names.has(name) && !isOneOf(ABSENT, name));
    return left.length === 0 ? [...names.keys()] : undefined;
  });
  const extra = missing.filter((name) => !expected.includes(name) && !isOneOf(OWN, name));
  t.strictSame(extra, [], 'no other names');
});

t.test('values before any traffic are those of Envoy', async (t) => {
  const values = await stats();
  const expected: Record<string, string> = {
    'cluster.found.max_host_weight': '1',
    'cluster.other.max_host_weight': '0',
    'cluster.named.max_host_weight': '1',
    'cluster.other.upstream_rq_completed': '0',
    'cluster_manager.cds.config_reload': '0',
  };
  for (const [name, value] of Object.entries(expected)) t.equal(values.get(name), value, name);
  // xxHash64 of `v1` is 9194640092791331756; a gauge has the nearest number of 53 bits.
  for (const name of ['http.egress.rds.routes', 'cluster.found', 'cluster_manager.cds', 'listener_manager.lds'])
    t.equal(Number(values.get(`${name}.version`)), Number(9194640092791331756n), name);
});
