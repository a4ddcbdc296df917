// A compiled HTTPFault: which requests get which fault, by configuration, runtime and request headers.

import t from 'tap';
import type { HTTPFault } from '../../../../../src/config/generated/api.js';
import { clusterOf, FaultRules } from '../../../../../src/extensions/filters/http/fault/rules.js';
import { Runtime } from '../../../../../src/runtime/runtime.js';
import { valueOfText } from '../../../../../src/runtime/value.js';
import { requestHead } from '../../../../http/routing/heads.js';

/** A random source that hits fractions above `percent`. */
const drawing = (percent: number) => ({ nextUint32: () => (percent / 100) * 2 ** 32 }) as never;
const ALL = { numerator: 100 };

function rules(config: HTTPFault, values: Record<string, string> = {}): FaultRules {
  const entries = Object.entries(values).map(([key, text]) => [key, valueOfText(text)] as const);
  return new FaultRules(config, new Runtime({ version: 1, values: new Map(entries) } as never), '');
}

function delay(config: HTTPFault, values: Record<string, string>, percent: number, ...lines: string[]): number {
  const head = requestHead('GET /', ...lines);
  return rules(config, values).delayOf(head, clusterOf(head), drawing(percent));
}

function abort(config: HTTPFault, values: Record<string, string>, percent: number, ...lines: string[]) {
  const head = requestHead('GET /', ...lines);
  const answer = rules(config, values).abortOf(head, clusterOf(head), drawing(percent));
  return answer && (answer.grpcStatus === undefined ? answer.status : `gRPC ${answer.grpcStatus}`);
}

t.test('a fixed delay applies to a fraction of requests, and runtime overrides both', async (t) => {
  const config = { delay: { fixed_delay: '1.5s', percentage: { numerator: 25 } } };
  t.equal(delay(config, {}, 24), 1500);
  t.equal(delay(config, {}, 25), 0);
  t.equal(delay(config, { 'fault.http.delay.fixed_delay_percent': '50' }, 49), 1500);
  t.equal(delay(config, { 'fault.http.delay.fixed_duration_ms': '7' }, 0), 7);
  t.equal(delay(config, { 'fault.http.delay.fixed_duration_ms': '0' }, 0), 0);
  const own = { ...config, delay_percent_runtime: 'a', delay_duration_runtime: 'b' };
  t.equal(delay(own, { a: '75', b: '8', 'fault.http.delay.fixed_duration_ms': '9' }, 74), 8);
  t.equal(
    delay({}, { 'fault.http.delay.fixed_delay_percent': '100' }, 0),
    0,
    'runtime has no effect without configuration',
  );
  t.equal(delay({ delay: { fixed_delay: '1s' } }, {}, 0), 0, 'no delay without a percentage');
  t.equal(delay({ delay: { fixed_delay: '9999999999s', percentage: ALL } }, {}, 0), 2 ** 31 - 1, 'the longest timer');
});

t.test('a request may set its delay, and a fraction up to the configured one', async (t) => {
  const config = { delay: { header_delay: {}, percentage: { numerator: 50 } } };
  t.equal(delay(config, {}, 49, 'x-envoy-fault-delay-request: 20'), 20);
  t.equal(delay(config, {}, 49), 0);
  for (const value of ['', 'soon', '-1', '1.5']) {
    t.equal(delay(config, {}, 0, `x-envoy-fault-delay-request: ${value}`), 0, value);
  }
  const share = (percent: string) => [
    'x-envoy-fault-delay-request: 20',
    `x-envoy-fault-delay-request-percentage: ${percent}`,
  ];
  t.equal(delay(config, {}, 9, ...share('10')), 20);
  t.equal(delay(config, {}, 10, ...share('10')), 0);
  t.equal(delay(config, {}, 50, ...share('100')), 0);
  t.equal(delay(config, {}, 49, ...share('much')), 20);
  const fine = { delay: { header_delay: {}, percentage: { numerator: 50, denominator: 'TEN_THOUSAND' as const } } };
  t.equal(delay(fine, {}, 0.09, ...share('10')), 20, 'with the denominator of the configured fraction');
  t.equal(delay(fine, {}, 0.1, ...share('10')), 0);
  const fixed = { delay: { fixed_delay: '1s', percentage: ALL } };
  t.equal(delay(fixed, {}, 99, ...share('0')), 1000, 'request headers do not change a fixed delay');
});

t.test('an abort has an HTTP or a gRPC status, and runtime overrides it', async (t) => {
  const config = { abort: { http_status: 418, percentage: { numerator: 25 } } };
  t.equal(abort(config, {}, 24), 418);
  t.equal(abort(config, {}, 25), undefined);
  t.equal(abort(config, { 'fault.http.abort.abort_percent': '100' }, 99), 418);
  t.equal(abort(config, { 'fault.http.abort.http_status': '503' }, 0), 503);
  t.equal(abort(config, { 'fault.http.abort.http_status': '99' }, 0), 418, 'it is not a response status');
  const named = { ...config, abort_percent_runtime: 'a', abort_http_status_runtime: 'b' };
  t.equal(abort(named, { a: '75', b: '503', 'fault.http.abort.http_status': '504' }, 74), 503);
  t.equal(
    abort(named, { a: '75', 'fault.http.abort.http_status': '504' }, 74),
    418,
    'a configured key replaces the default key',
  );
  const grpc = { abort: { grpc_status: 5, percentage: ALL }, abort_grpc_status_runtime: 'a' };
  t.equal(abort(grpc, {}, 0), 'gRPC 5');
  t.equal(abort(grpc, { a: '6' }, 0), 'gRPC 6');
  t.equal(abort({ abort: { grpc_status: 0, percentage: ALL } }, {}, 0), 'gRPC 0');
});

t.test('a request may set its status', async (t) => {
  const config = { abort: { header_abort: {}, percentage: { numerator: 50 } } };
  t.equal(abort(config, {}, 0), undefined);
  t.equal(abort(config, {}, 0, 'x-envoy-fault-abort-request: 503'), 503);
  t.equal(abort(config, {}, 0, 'x-envoy-fault-abort-request: 199'), undefined);
  t.equal(abort(config, {}, 0, 'x-envoy-fault-abort-request: 600'), undefined);
  t.equal(abort(config, {}, 0, 'x-envoy-fault-abort-grpc-request: 14'), 'gRPC 14');
  t.equal(abort(config, {}, 0, 'x-envoy-fault-abort-grpc-request: 17'), undefined);
  t.equal(
    abort(config, {}, 0, 'x-envoy-fault-abort-request: 503', 'x-envoy-fault-abort-grpc-request: 14'),
    503,
    'the HTTP status takes precedence',
  );
  const percentage = 'x-envoy-fault-abort-request-percentage: 10';
  t.equal(abort(config, {}, 10, 'x-envoy-fault-abort-request: 503', percentage), undefined);
  t.equal(abort(config, {}, 9, 'x-envoy-fault-abort-request: 503', percentage), 503);
});

t.test('runtime may have values for one downstream cluster', async (t) => {
  const config = {
    delay: { fixed_delay: '1s', percentage: { numerator: 10 } },
    abort: { http_status: 418, percentage: { numerator: 10 } },
  };
  const values = {
    'fault.http.shop.delay.fixed_delay_percent': '100',
    'fault.http.shop.delay.fixed_duration_ms': '3',
    'fault.http.shop.abort.http_status': '503',
    'fault.http.abort.abort_percent': '60',
  };
  const shop = 'x-envoy-downstream-service-cluster: shop';
  t.equal(delay(config, values, 50, shop), 3);
  t.equal(delay(config, values, 50), 0);
  t.equal(delay(config, values, 9, 'x-envoy-downstream-service-cluster: other'), 1000);
  t.equal(abort(config, values, 50, shop), 503, 'the general key applies if the cluster has none');
  t.equal(abort(config, values, 50), 418);
});

t.test('a fault applies to requests that match all conditions', async (t) => {
  const isFor = (config: HTTPFault, cluster: string | undefined, ...lines: string[]) =>
    rules(config).isFor(requestHead('GET /', ...lines), {
      route: () => cluster && { clusterName: cluster },
    } as never);
  t.ok(isFor({}, undefined));
  t.ok(isFor({ upstream_cluster: 'a' }, 'a'));
  t.notOk(isFor({ upstream_cluster: 'a' }, 'b'));
  t.notOk(isFor({ upstream_cluster: 'a' }, undefined));
  const nodes = { downstream_nodes: ['n1', 'n2'] };
  t.ok(isFor(nodes, 'a', 'x-envoy-downstream-service-node: n2'));
  t.notOk(isFor(nodes, 'a', 'x-envoy-downstream-service-node: n3'));
  t.notOk(isFor(nodes, 'a'));
  const headers = {
    headers: [
      { name: 'x-a', string_match: { exact: '1' } },
      { name: 'x-b', present_match: true },
    ],
  };
  t.ok(isFor(headers, 'a', 'x-a: 1', 'x-b: 2'));
  t.notOk(isFor(headers, 'a', 'x-a: 1'));
});

t.test('the number of active faults is limited by configuration or runtime', async (t) => {
  t.equal(rules({}).maxActive, Infinity);
  t.equal(rules({ max_active_faults: 0 }).maxActive, 0);
  t.equal(rules({ max_active_faults: 2 }, { 'fault.http.max_active_faults': '5' }).maxActive, 5);
  t.equal(rules({ max_active_faults_runtime: 'a' }, { a: '6' }).maxActive, 6);
  t.ok(rules({}).isEmpty);
  t.notOk(rules({ abort: { http_status: 500 } }).isEmpty);
});
