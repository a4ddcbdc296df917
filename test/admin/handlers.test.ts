import t from 'tap';
import { parseAddress } from '../../src/io/addresses/address.js';
import { defineLayout } from '../../src/stats/layout.js';
import { HostStats } from '../../src/stats/layouts/cluster.js';
import { HealthFlag } from '../../src/upstream/hosts/health-flags.js';
import { Origin } from '../../src/upstream/outliers/outlier-detector.js';
import { httpRequest } from '../e2e/harness/http-client.js';
import { decodesAs } from './admin-messages.js';
import { captureLog } from './capture-log.js';
import { type FakeServices, startAdmin } from './fixture.js';

const Counts = defineLayout({ hits: 'counter', active: 'gauge', build: 'text', took_ms: 'histogram' });

function addTwoClusters(services: FakeServices): void {
  const web = services.addCluster({
    name: 'web',
    alt_stat_name: 'front_web',
    circuit_breakers: {
      thresholds: [
        { max_connections: 5, max_retries: 7 },
        { priority: 'HIGH', max_requests: 9 },
      ],
    },
    load_assignment: {
      cluster_name: 'web',
      endpoints: [
        {
          priority: 1,
          lb_endpoints: [{ endpoint: { address: { socket_address: { address: '::1', port_value: 81 } } } }],
        },
        {
          locality: { region: 'eu', zone: 'eu-1', sub_zone: 'a' },
          lb_endpoints: [
            {
              endpoint: {
                address: { socket_address: { address: '10.0.0.1', port_value: 80 } },
                hostname: 'one.example',
              },
              load_balancing_weight: 3,
            },
            { endpoint: { address: { pipe: { path: '/run/web.sock' } } }, health_status: 'UNHEALTHY' },
          ],
        },
      ],
    },
  });
  services.addCluster({ name: 'empty' });
  const stats = web.statsOf('10.0.0.1:80');
  stats.add(HostStats.at.rq_total, 12);
  stats.add(HostStats.at.rq_success, 11);
  stats.increment(HostStats.at.cx_active);
  web.flags.set('[::1]:81', HealthFlag.FailedActiveHealthCheck | HealthFlag.FailedOutlierCheck);
}

t.test('/ready shows whether the server accepts traffic', async (t) => {
  const { services, port } = await startAdmin(t);
  const live = await httpRequest(port, '/ready');
  t.match(live, { status: 200, body: /^LIVE\n$/ });
  t.match(live.headers, {
    'content-type': 'text/plain; charset=UTF-8',
    'cache-control': 'no-cache, max-age=0',
    'x-content-type-options': 'nosniff',
    'transfer-encoding': 'chunked',
    server: 'baton',
    date: /GMT$/,
  });
  services.currentState = 'PRE_INITIALIZING';
  t.match(await httpRequest(port, '/ready'), { status: 503, body: /^PRE_INITIALIZING\n$/ });
});

t.test('/server_info decodes as ServerInfo and prints default values', async (t) => {
  const { services, port } = await startAdmin(t);
  services.commandLineOptions = { base_id: '0', concurrency: 2, mode: 'Serve', drain_time: '600s', stats_tag: [] };
  const answer = await httpRequest(port, '/server_info');
  t.equal(answer.headers['content-type'], 'application/json');
  const info = JSON.parse(answer.body);
  t.match(info, {
    version: services.version,
    state: 'LIVE',
    hot_restart_version: 'disabled',
    uptime_current_epoch: '6s',
    uptime_all_epochs: '3600s',
    command_line_options: { base_id: '0', concurrency: 2 },
    node: {
      id: 'node-1',
      cluster: 'front',
      locality: { zone: 'z1' },
      user_agent_name: 'baton',
      metadata: {},
      extensions: [],
    },
  });
  decodesAs(t, 'ServerInfo', info);
});

t.test('/listeners lists the bound addresses of each listener', async (t) => {
  const { services, port } = await startAdmin(t);
  t.equal((await httpRequest(port, '/listeners')).body, '');
  t.equal((await httpRequest(port, '/listeners?format=json')).body, '{}\n');
  services.listenerViews = [
    {
      name: 'ingress',
      addresses: [parseAddress('127.0.0.1:10000')!, parseAddress('[::1]:10000')!],
      statPrefix: 'listener.in.',
    },
    { name: 'local', addresses: [parseAddress('/run/in.sock')!], statPrefix: 'listener._run_in_sock.' },
  ];
  const lines = 'ingress::127.0.0.1:10000\ningress::[::1]:10000\nlocal::/run/in.sock\n';
  t.equal((await httpRequest(port, '/listeners')).body, lines);
  t.equal((await httpRequest(port, '/listeners?format=unheard-of')).body, lines);
  const answer = await httpRequest(port, '/listeners?format=json');
  t.equal(answer.headers['content-type'], 'application/json');
  const listeners = JSON.parse(answer.body);
  t.same(listeners, {
    listener_statuses: [
      {
        name: 'ingress',
        local_address: { socket_address: { address: '127.0.0.1', port_value: 10000 } },
        additional_local_addresses: [{ socket_address: { address: '::1', port_value: 10000 } }],
      },
      { name: 'local', local_address: { pipe: { path: '/run/in.sock' } } },
    ],
  });
  t.equal(answer.body, `${JSON.stringify(listeners, null, 1)}\n`, 'pretty, with one space');
  decodesAs(t, 'Listeners', listeners);
});

t.test('/clusters prints clusters and hosts as text', async (t) => {
  const { services, port } = await startAdmin(t);
  addTwoClusters(services);
  const { body } = await httpRequest(port, '/clusters');
  const host = (address: string, lines: string[]) => lines.map((line) => `web::${address}::${line}`);
  const counts = (cxActive: number, rqSuccess: number, rqTotal: number) => [
    `cx_active::${cxActive}`,
    'cx_connect_fail::0',
    'cx_total::0',
    'rq_active::0',
    'rq_error::0',
    'rq_pending_active::0',
    `rq_success::${rqSuccess}`,
    'rq_timeout::0',
    `rq_total::${rqTotal}`,
  ];
  const place = (region: string, zone: string, subZone: string) => [
    `region::${region}`,
    `zone::${zone}`,
    `sub_zone::${subZone}`,
    'canary::false',
  ];
  const rates = ['success_rate::-1', 'local_origin_success_rate::-1'];
  const thresholds = (cluster: string, priority: string, values: number[]) =>
    ['max_connections', 'max_pending_requests', 'max_requests', 'max_retries'].map(
      (name, index) => `${cluster}::${priority}::${name}::${values[index]}`,
    );
  t.same(body.split('\n'), [
    'version_info::static',
    'web::observability_name::front_web',
    ...thresholds('web', 'default_priority', [5, 1024, 1024, 7]),
    ...thresholds('web', 'high_priority', [1024, 1024, 9, 3]),
    'web::added_via_api::false',
    ...host('10.0.0.1:80', [
      ...counts(1, 11, 12),
      'hostname::one.example',
      'healthy::healthy',
      'health_flags::healthy',
      'weight::3',
      ...place('eu', 'eu-1', 'a'),
      'priority::0',
      ...rates,
    ]),
    ...host('/run/web.sock', [
      ...counts(0, 0, 0),
      'hostname::',
      'healthy::/failed_eds_health',
      'health_flags::/failed_eds_health',
      'weight::1',
      ...place('eu', 'eu-1', 'a'),
      'priority::0',
      ...rates,
    ]),
    ...host('[::1]:81', [
      ...counts(0, 0, 0),
      'hostname::',
      'healthy::/failed_active_hc/failed_outlier_check',
      'health_flags::/failed_active_hc/failed_outlier_check',
      'weight::1',
      ...place('', '', ''),
      'priority::1',
      ...rates,
    ]),
    'empty::observability_name::empty',
    ...thresholds('empty', 'default_priority', [1024, 1024, 1024, 3]),
    ...thresholds('empty', 'high_priority', [1024, 1024, 1024, 3]),
    'empty::added_via_api::false',
    '',
  ]);
});

t.test('/clusters as JSON decodes as Clusters and omits default values', async (t) => {
  const { services, port } = await startAdmin(t);
  t.equal((await httpRequest(port, '/clusters?format=json')).body, '{}\n');
  addTwoClusters(services);
  services.clusterViews[1]!.isAddedViaApi = true;
  services.clusterViews[1]!.edsServiceName = 'eds';
  const { body } = await httpRequest(port, '/clusters?format=json');
  const clusters = JSON.parse(body);
  t.equal(body, `${JSON.stringify(clusters, null, 1)}\n`, 'pretty, with one space');
  decodesAs(t, 'Clusters', clusters);
  const [web, empty] = clusters.cluster_statuses;
  t.same(empty, {
    name: 'empty',
    observability_name: 'empty',
    eds_service_name: 'eds',
    added_via_api: true,
    circuit_breakers: {
      thresholds: [
        { max_connections: 1024, max_pending_requests: 1024, max_requests: 1024, max_retries: 3 },
        { priority: 'HIGH', max_connections: 1024, max_pending_requests: 1024, max_requests: 1024, max_retries: 3 },
      ],
    },
  });
  t.notOk('added_via_api' in web || 'eds_service_name' in web);
  t.same(web.host_statuses[0], {
    address: { socket_address: { address: '10.0.0.1', port_value: 80 } },
    stats: [
      { name: 'cx_connect_fail' },
      { name: 'cx_total' },
      { name: 'rq_error' },
      { name: 'rq_success', value: '11' },
      { name: 'rq_timeout' },
      { name: 'rq_total', value: '12' },
      { type: 'GAUGE', name: 'cx_active', value: '1' },
      { type: 'GAUGE', name: 'rq_active' },
      { type: 'GAUGE', name: 'rq_pending_active' },
    ],
    health_status: { eds_health_status: 'HEALTHY' },
    weight: 3,
    hostname: 'one.example',
    locality: { region: 'eu', zone: 'eu-1', sub_zone: 'a' },
  });
  t.match(web.host_statuses[1], { address: { pipe: { path: '/run/web.sock' } }, locality: { region: 'eu' } });
  t.same(web.host_statuses[1].health_status, { eds_health_status: 'UNHEALTHY' });
  t.match(web.host_statuses[2], { priority: 1, locality: {} });
  t.same(web.host_statuses[2].health_status, {
    failed_active_health_check: true,
    failed_outlier_check: true,
    eds_health_status: 'HEALTHY',
  });
});

t.test('/clusters shows the results of outlier detection for the last interval', async (t) => {
  const { services, port } = await startAdmin(t);
  addTwoClusters(services);
  const web = services.clusterViews[0]!;
  const empty = services.clusterViews[1]!;
  const { block } = web.hosts.find((host) => host.address === '10.0.0.1:80')!;
  const rates = [
    { average: 100 / 3, threshold: 20.5 },
    { average: -1, threshold: -1 },
  ] as const;
  web.outliers = {
    rates: (origin) => rates[origin],
    successRate: (host, origin) => (host === block && origin === Origin.Local ? 100 / 3 : -1),
  };
  empty.outliers = { rates: () => ({ average: 50, threshold: -3.25 }), successRate: () => 0 };
  const lines = (await httpRequest(port, '/clusters')).body.split('\n');
  t.same(lines.slice(1, 6), [
    'web::observability_name::front_web',
    'web::outlier::success_rate_average::33.3333',
    'web::outlier::success_rate_ejection_threshold::20.5',
    'web::outlier::local_origin_success_rate_average::-1',
    'web::outlier::local_origin_success_rate_ejection_threshold::-1',
  ]);
  t.same(
    lines.filter((line) => line.startsWith('web::10.0.0.1:80::') && line.includes('success_rate')),
    ['web::10.0.0.1:80::success_rate::-1', `web::10.0.0.1:80::local_origin_success_rate::${100 / 3}`],
  );
  const { body } = await httpRequest(port, '/clusters?format=json');
  const clusters = JSON.parse(body);
  decodesAs(t, 'Clusters', clusters);
  const { success_rate_ejection_threshold: threshold, host_statuses: hosts } = clusters.cluster_statuses[0];
  t.same(threshold, { value: 20.5 });
  t.same(hosts[0].local_origin_success_rate, { value: 100 / 3 });
  const known = body.match(/"\w*success_rate\w*"/g)!;
  t.same(known.length, 2, 'unknown rates are omitted');
});

t.test('/clusters?filter= selects clusters by a part of their name, in both formats', async (t) => {
  const { services, port } = await startAdmin(t);
  addTwoClusters(services);
  const names = async (query: string) =>
    new Set((await httpRequest(port, `/clusters?${query}`)).body.match(/^\w+(?=::observ)|(?<="name": ")(web|empty)/gm));
  t.same(await names('filter=mpt'), new Set(['empty']));
  t.same(await names('filter=^w&format=json'), new Set(['web']));
  t.same(await names('filter='), new Set(['web', 'empty']));
  t.match(await httpRequest(port, '/clusters?filter=['), { status: 400, body: /^Invalid re2 regex$/ });
  t.match(await httpRequest(port, `/clusters?filter=${'a'.repeat(5000)}`), {
    status: 400,
    body: 'Invalid re2 regex: a regular expression of 5000 characters is too long: at most 4096',
  });
  const form = { 'content-type': 'application/x-www-form-urlencoded' };
  const large = `filter=${'x'.repeat(1_000_000)}`;
  for (const path of ['/clusters', '/stats', '/stats?format=prometheus', '/stats/prometheus']) {
    const { body, status } = await httpRequest(port, path.replace(/\?.*/, ''), {
      method: 'POST',
      headers: form,
      body: large,
    });
    t.same(
      [status, body],
      [400, 'Invalid re2 regex: a regular expression of 1000000 characters is too long: at most 4096'],
    );
  }
});

t.test('/stats prints text and applies its selections', async (t) => {
  const { services, port } = await startAdmin(t);
  const ref = services.stats.addScope('web.', Counts);
  services.stats.addScope('web.host.a.', Counts, { hidden: true });
  const scope = services.stats.scope(ref);
  scope.add(Counts.at.hits, 4);
  services.stats.setText(ref, Counts.at.build, 'abc');
  scope.record(Counts.at.took_ms, 7);
  services.stats.flush();
  const stats = async (query: string) => (await httpRequest(port, `/stats${query}`)).body;
  t.match(
    await stats(''),
    /^web\.build: "abc"\nweb\.active: 0\nweb\.hits: 4\nweb\.took_ms: P0\(7\.05,7\.05\) P25\(7\.05,/,
  );
  t.match(await stats('?usedonly=false&format=text'), /^web\.build: "abc"\nweb\.hits: 4\nweb\.took_ms: P0/);
  t.equal(await stats('?filter=^web.h%69ts$'), 'web.hits: 4\n');
  t.equal(await stats('?filter=it+s'), 'web.hits: 4\n', 'a plus sign is part of the expression');
  t.match(await stats('?filter=hits&invert_filter&type=Gauges'), /^web.active: 0\n$/);
  t.equal(await stats('?type=Counters'), 'web.hits: 4\n');
  t.equal(await stats('?type=Counters&hidden=include'), 'web.hits: 4\nweb.host.a.hits: 0\n');
  t.equal(await stats('?type=Counters&hidden=only'), 'web.host.a.hits: 0\n');
  t.match(await stats('?type=Histograms&histogram_buckets=cumulative'), /^web\.took_ms: B0\.5\(0,0\) .*B10\(1,1\)/);
  t.match(await stats('?type=Histograms&histogram_buckets=none'), /^web\.took_ms: P0/);
  t.equal(await stats('?filter=nothing-like-it'), '');
});

t.test('/stats as JSON applies the same selections', async (t) => {
  const { services, port } = await startAdmin(t);
  services.stats.scope(services.stats.addScope('web.', Counts)).add(Counts.at.hits, 4);
  const answer = await httpRequest(port, '/stats?format=json&usedonly');
  t.equal(answer.headers['content-type'], 'application/json');
  t.equal(answer.body, '{"stats":[{"name":"web.hits","value":4}]}');
  t.equal((await httpRequest(port, '/stats?format=json&filter=nothing')).body, '{"stats":[]}');
});

t.test('/stats refuses invalid values', async (t) => {
  const { port } = await startAdmin(t);
  const refusals = {
    'filter=(': 'Invalid re2 regex: missing ): (',
    [`filter=${'('.repeat(9000)}${')'.repeat(9000)}`]:
      'Invalid re2 regex: a regular expression of 18000 characters is too long: at most 4096',
    [`filter=${'.*'.repeat(1000)}x`]:
      'Invalid re2 regex: a regular expression that makes about 13002 instructions is too costly: at most 4096',
    'type=Counter': 'invalid &type= param',
    'hidden=bad': 'usage: /stats?hidden=(include|only|exclude)\n\n',
    'format=yaml': 'usage: /stats?format=(html|active-html|json|prometheus|text)\n\n',
    'histogram_buckets=all':
      'usage: /stats?histogram_buckets=(cumulative|disjoint|detailed|summary|prometheusnative)\n',
    invert_filter: 'invert_filter needs a filter\n',
  };
  for (const [query, body] of Object.entries(refusals)) {
    const answer = await httpRequest(port, `/stats?${query}`);
    t.same([answer.status, answer.body], [400, body], query);
    t.equal(answer.headers['content-type'], 'text/plain; charset=UTF-8');
  }
});

t.test('with stats_flush_on_admin a sample is visible immediately', async (t) => {
  const { services, port } = await startAdmin(t);
  const scope = services.stats.scope(services.stats.addScope('web.', Counts));
  scope.record(Counts.at.took_ms, 7);
  const query = '/stats?type=Histograms';
  t.equal((await httpRequest(port, query)).body, 'web.took_ms: No recorded values\n');
  services.flushesStatsOnAdmin = true;
  t.match((await httpRequest(port, query)).body, /^web.took_ms: P0\(7.05,7.05\)/);
  t.same(services.calls, ['flushStats']);
});

t.test('/help lists every endpoint in the order of paths, with its parameters', async (t) => {
  const { port } = await startAdmin(t);
  const { body } = await httpRequest(port, '/help');
  t.match(body, /^admin commands are:\n/);
  const paths = [...body.matchAll(/^ {2}(\/[^ :]*)/gm)].map((line) => line[1]);
  t.strictSame(paths, paths.toSorted());
  for (const lines of [
    '  /certs: print certs on machine\n',
    '  /clusters: upstream cluster status\n      filter: Regular expression (Google re2) for filtering clusters by name\n      format: File format to use; One of (text, json)\n',
    '  /quitquitquit (POST): exit the server\n',
    '  /ready: print server state, return 200 if LIVE, otherwise return 503\n',
  ]) {
    t.ok(body.includes(lines), lines);
  }
});

t.test('endpoints that change something accept only POST', async (t) => {
  captureLog(t);
  const { services, port } = await startAdmin(t);
  for (const [path, call] of [
    ['/quitquitquit', 'quit'],
    ['/reopen_logs', 'reopenLogs'],
  ] as const) {
    for (const method of ['GET', 'PUT', 'DELETE']) {
      const refused = await httpRequest(port, path, { method });
      t.same([refused.status, refused.body], [400, `Method ${method} not allowed, POST required.`]);
    }
    t.equal((await httpRequest(port, path, { method: 'HEAD' })).status, 400);
    t.same(services.calls, [], 'nothing was changed');
    const done = await httpRequest(port, path, { method: 'POST' });
    t.same([done.status, done.body], [200, 'OK\n']);
    t.same(services.calls.splice(0), [call]);
  }
});

t.test(
  '/drain_listeners accepts each combination of its flags, and /drain_status shows the remaining connections',
  async (t) => {
    const { services, port } = await startAdmin(t);
    const drain = (query: string) => httpRequest(port, `/drain_listeners${query}`, { method: 'POST' });
    for (const query of ['', '?inboundonly', '?graceful', '?graceful&inboundonly', '?skip_exit&graceful']) {
      t.match(await drain(query), { status: 200, body: /^OK\n$/ });
    }
    t.match(await drain('?skip_exit'), { status: 400 });
    t.same(services.calls, [
      'stopListeners false',
      'stopListeners true',
      'drainListeners false false',
      'drainListeners true false',
      'drainListeners false true',
    ]);
    t.same(JSON.parse((await httpRequest(port, '/drain_status')).body), { mode: 'none', listeners: [] });
    const listeners = [{ name: 'in', state: 'DRAINING' as const, connections: 3, requests: 1 }];
    services.drainState = {
      drain: { strategy: 'gradual', reach: 'inbound', reason: 'restart', elapsedMs: 1234.5678, remainingMs: 598_765.4 },
      listeners,
    };
    const answer = await httpRequest(port, '/drain_status');
    t.equal(answer.headers['content-type'], 'application/json');
    const whole = { mode: 'gradual', reach: 'inbound', reason: 'restart', elapsed: '1.235s', remaining: '598.765s' };
    t.same(JSON.parse(answer.body), { ...whole, listeners });
  },
);
