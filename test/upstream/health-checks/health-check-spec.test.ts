import t from 'tap';
import type { Cluster, HealthCheck } from '../../../src/config/generated/api.js';
import { Method } from '../../../src/http/headers/header-block.js';
import {
  type HttpCheckSpec,
  healthCheckSpec,
  isInRanges,
  type TcpCheckSpec,
} from '../../../src/upstream/health-checks/health-check-spec.js';

const BASE: HealthCheck = { timeout: '1s', interval: '5s', unhealthy_threshold: 2, healthy_threshold: 3 };

function spec(check: HealthCheck, cluster: Partial<Cluster> = {}) {
  return healthCheckSpec({ name: 'api', health_checks: [{ ...BASE, ...check }], ...cluster })!;
}

t.test('a cluster without health_checks has no spec', async (t) => {
  t.equal(healthCheckSpec({ name: 'api' }), undefined);
});

t.test("unset fields have the API's defaults", async (t) => {
  const { check, ...rest } = spec({ http_health_check: { path: '/healthz' } });
  const { expected, host, methodText, retriable } = check as HttpCheckSpec;
  t.same([host, methodText, retriable], ['api', 'GET', []]);
  t.same(
    [199, 200, 201, 204].map((status) => isInRanges(status, expected)),
    [false, true, false, false],
  );
  t.match(rest, {
    timeoutMs: 1000,
    thresholds: { unhealthy: 2, healthy: 3 },
    reusesConnection: true,
    logsFailures: false,
    excludesNewHosts: false,
    removesHealthyHosts: false,
  });
  t.match(rest.intervals, { interval: 5000, noTraffic: 60_000, noTrafficHealthy: 60_000, initialJitter: 0, jitter: 0 });
  t.match(rest.intervals, { unhealthy: 5000, unhealthyEdge: 5000, healthyEdge: 5000 });
});

t.test('an unset interval defaults to the interval that it refines', async (t) => {
  const { intervals } = spec({ unhealthy_interval: '2s', no_traffic_interval: '7s' });
  t.match(intervals, {
    unhealthy: 2000,
    unhealthyEdge: 2000,
    healthyEdge: 5000,
    noTraffic: 7000,
    noTrafficHealthy: 7000,
  });
});

t.test('all intervals and jitters are configurable', async (t) => {
  const { intervals, logsFailures, logsSuccesses } = spec({
    interval: '1s',
    no_traffic_interval: '2s',
    no_traffic_healthy_interval: '3s',
    unhealthy_interval: '4s',
    unhealthy_edge_interval: '5s',
    healthy_edge_interval: '6s',
    initial_jitter: '7s',
    interval_jitter: '8s',
    interval_jitter_percent: 9,
    always_log_health_check_success: true,
  });
  t.same(intervals, {
    interval: 1000,
    noTraffic: 2000,
    noTrafficHealthy: 3000,
    unhealthy: 4000,
    unhealthyEdge: 5000,
    healthyEdge: 6000,
    initialJitter: 7000,
    jitter: 8000,
    jitterPercent: 9,
  });
  t.same([logsFailures, logsSuccesses], [false, true]);
});

t.test('an HTTP check is converted from its configuration', async (t) => {
  const http = spec({
    http_health_check: {
      host: 'health.test',
      path: '/',
      method: 'HEAD',
      expected_statuses: [{ start: '200', end: '300' }],
      retriable_statuses: [{ start: '503', end: '504' }],
    },
  }).check as HttpCheckSpec;
  t.same([http.host, http.method, http.methodText], ['health.test', Method.Head, 'HEAD']);
  t.same(
    [204, 300].map((status) => isInRanges(status, http.expected)),
    [true, false],
  );
  t.same(
    [503, 504].map((status) => isInRanges(status, http.retriable)),
    [true, false],
  );
});

t.test('payloads are hexadecimal text or bytes', async (t) => {
  const receive = [{ text: '4F4b' }, { binary: Buffer.from('yes').toString('base64') }];
  const tcp = spec({ tcp_health_check: { send: { text: '50494E47' }, receive } }).check as TcpCheckSpec;
  t.same([tcp.send?.toString(), tcp.receive.map(String)], ['PING', ['OK', 'yes']]);
  t.same(spec({ tcp_health_check: {} }).check, { kind: 'tcp', send: undefined, receive: [] });
});
