// When, and how often, a request is retried by its policy.

import t from 'tap';
import { parseRetryOn, RetryOn } from '../../../../src/config/fields/retry-on.js';
import type { RouteAction } from '../../../../src/config/generated/api.js';
import { RetryPolicy } from '../../../../src/http/routing/retries/retry-policy.js';
import { RetryDecision, RetryReset, RetryState } from '../../../../src/http/routing/retries/retry-state.js';
import { runtimeOf, setValues } from '../../../runtime/values.js';
import { linesOf, requestHead, responseHead } from '../heads.js';

/** In milliseconds since 1970. */
const NOW = 1_000_500;

type Config = NonNullable<RouteAction['retry_policy']>;

function begin(config: Config | undefined, ...lines: string[]): RetryState {
  const state = new RetryState();
  state.begin(
    config === undefined ? undefined : new RetryPolicy(config, 'retry_policy'),
    requestHead('GET /', ...lines),
  );
  return state;
}

/** Whether a response causes a retry. */
function retries(config: Config, status: number, ...lines: string[]): boolean {
  return begin(config).onHeaders(status, responseHead(status, ...lines), NOW) === RetryDecision.Retry;
}

t.test('retry_on conditions match statuses', async (t) => {
  const cases: [string, number, boolean][] = [
    ['5xx', 500, true],
    ['5xx', 504, true],
    ['5xx', 499, false],
    ['gateway-error', 500, false],
    ['gateway-error', 502, true],
    ['gateway-error', 503, true],
    ['gateway-error', 504, true],
    ['gateway-error', 505, false],
    ['retriable-4xx', 409, true],
    ['retriable-4xx', 404, false],
    ['connect-failure', 503, false],
    ['reset', 503, false],
    ['connect-failure, gateway-error', 503, true],
    ['', 503, false],
  ];
  for (const [retry_on, status, expected] of cases)
    t.equal(retries({ retry_on }, status), expected, `${retry_on} ${status}`);
});

t.test('retriable-status-codes and retriable-headers match as configured', async (t) => {
  const codes: Config = { retry_on: 'retriable-status-codes', retriable_status_codes: [404, 418] };
  t.equal(retries(codes, 404), true);
  t.equal(retries(codes, 403), false);
  t.equal(retries({ ...codes, retry_on: '5xx' }, 404), false, 'only when configured');
  const headers: Config = {
    retry_on: 'retriable-headers',
    retriable_headers: [{ name: 'x-again' }, { name: ':status', string_match: { exact: '404' } }],
  };
  t.equal(retries(headers, 200, 'X-Again: 1'), true);
  t.equal(retries(headers, 200), false);
  t.equal(retries(headers, 404), true);
  const ofRequests: Config = {
    retry_on: 'retriable-headers',
    retriable_headers: [{ name: ':path' }, { name: ':method' }],
  };
  t.equal(retries(ofRequests, 500), false, 'responses have no pseudo-headers of requests');
});

t.test('gRPC conditions match grpc-status', async (t) => {
  t.equal(retries({ retry_on: 'unavailable' }, 200, 'grpc-status: 14'), true);
  t.equal(retries({ retry_on: 'unavailable' }, 200, 'grpc-status: 13'), false);
  t.equal(
    retries({ retry_on: 'cancelled,deadline-exceeded,resource-exhausted,internal' }, 200, 'grpc-status: 8'),
    true,
  );
  t.equal(retries({ retry_on: 'unavailable' }, 200), false);
});

t.test('a rate-limited response is retried only when configured', async (t) => {
  const limited = 'x-envoy-ratelimited: true';
  t.equal(retries({ retry_on: '5xx' }, 503, limited), false);
  t.equal(retries({ retry_on: 'envoy-ratelimited' }, 429, limited), true);
});

t.test('reset conditions match resets', async (t) => {
  const cases: [string, RetryReset, boolean, boolean][] = [
    ['5xx', RetryReset.Reset, true, true],
    ['5xx', RetryReset.ConnectFailure, false, true],
    ['5xx', RetryReset.Local, true, true],
    ['gateway-error', RetryReset.Reset, true, true],
    ['reset', RetryReset.Reset, true, true],
    ['reset', RetryReset.ConnectFailure, false, true],
    ['reset-before-request', RetryReset.Reset, false, true],
    ['reset-before-request', RetryReset.Reset, true, false],
    ['connect-failure', RetryReset.ConnectFailure, false, true],
    ['connect-failure', RetryReset.Reset, true, false],
    ['refused-stream', RetryReset.RefusedStream, true, true],
    ['refused-stream', RetryReset.Reset, true, false],
    ['retriable-4xx', RetryReset.Reset, true, false],
    ['5xx,reset,connect-failure,reset-before-request', RetryReset.Overflow, false, false],
  ];
  for (const [retry_on, kind, started, expected] of cases) {
    const decision = begin({ retry_on }).onReset(kind, started);
    t.equal(decision, expected ? RetryDecision.Retry : RetryDecision.No, `${retry_on} ${kind} ${started}`);
  }
});

t.test('num_retries defaults to one, and reaching the limit is reported', async (t) => {
  const once = begin({ retry_on: '5xx' });
  t.equal(once.isEnabled, true);
  t.equal(once.onReset(RetryReset.Reset, true), RetryDecision.Retry);
  t.equal(once.onHeaders(200, responseHead(200), NOW), RetryDecision.No);
  t.equal(once.onReset(RetryReset.Reset, true), RetryDecision.LimitExceeded);
  t.equal(once.isEnabled, false);
  const none = begin({ retry_on: '5xx', num_retries: 0 });
  t.equal(none.isEnabled, false);
  t.equal(none.onReset(RetryReset.Reset, true), RetryDecision.LimitExceeded);
  const three = begin({ retry_on: '5xx', num_retries: 3 });
  t.same(
    [1, 2, 3, 4].map(() => three.onHeaders(503, responseHead(503), NOW)),
    [RetryDecision.Retry, RetryDecision.Retry, RetryDecision.Retry, RetryDecision.LimitExceeded],
  );
  const given = begin({ retry_on: '5xx' });
  given.disable();
  t.equal(given.onReset(RetryReset.Reset, true), RetryDecision.No);
});

t.test('a state can be reused for further requests', async (t) => {
  const state = begin({ retry_on: '5xx' }, 'x-envoy-max-retries: 3', 'x-envoy-retriable-status-codes: 404');
  state.onReset(RetryReset.Reset, true);
  state.begin(new RetryPolicy({ retry_on: 'retriable-status-codes' }, ''), requestHead('GET /'));
  t.equal(state.onHeaders(404, responseHead(404), NOW), RetryDecision.No);
  state.begin(undefined, requestHead('GET /'));
  t.equal(state.isEnabled, false);
  t.equal(state.onReset(RetryReset.Reset, true), RetryDecision.No);
});

t.test('a request may enable retries by headers, which are not forwarded', async (t) => {
  const head = requestHead(
    'GET /',
    'X-Envoy-Retry-On: 5xx,nonsense',
    'x-envoy-retry-grpc-on: internal',
    'x-envoy-max-retries: 2',
    'x-envoy-retriable-status-codes: 404,x, 405',
    'x-envoy-retriable-header-names: X-Again',
    'x-else: 1',
  );
  const state = new RetryState();
  state.begin(undefined, head);
  t.same(linesOf(head), ['x-else: 1']);
  t.equal(state.onHeaders(503, responseHead(503), NOW), RetryDecision.Retry);
  t.equal(state.onHeaders(404, responseHead(404), NOW), RetryDecision.No, 'the condition is not enabled');
  t.equal(state.onHeaders(200, responseHead(200, 'grpc-status: 13'), NOW), RetryDecision.Retry);
  t.equal(state.onHeaders(503, responseHead(503), NOW), RetryDecision.LimitExceeded);
  const codes = begin({ retry_on: 'retriable-status-codes' }, 'x-envoy-retriable-status-codes: 404, 405');
  t.equal(codes.onHeaders(405, responseHead(405), NOW), RetryDecision.Retry);
  const names = begin({ retry_on: 'retriable-headers' }, 'x-envoy-retriable-header-names: a, X-Again');
  t.equal(names.onHeaders(200, responseHead(200, 'x-again: 1'), NOW), RetryDecision.Retry);
  t.equal(begin({ retry_on: '5xx' }, 'x-envoy-max-retries: many').isEnabled, true, 'invalid values change nothing');
});

t.test('retriable_request_headers select the requests that may be retried', async (t) => {
  const config: Config = {
    retry_on: '5xx',
    retriable_request_headers: [{ name: ':method', string_match: { exact: 'PUT' } }, { name: 'x-safe' }],
  };
  t.equal(begin(config).isEnabled, false);
  t.equal(begin(config, 'x-safe: 1').isEnabled, true);
});

t.test('back-off is fully jittered, and its interval doubles up to the maximum', async (t) => {
  const almostOne = 1 - 2 ** -32;
  const byDefault = begin({ retry_on: '5xx' });
  t.same(
    [1, 2, 3, 4, 5, 6].map(() => byDefault.backoffMs(almostOne)),
    [24, 49, 99, 199, 249, 249],
  );
  byDefault.begin(new RetryPolicy({ retry_on: '5xx' }, 'retry_policy'), requestHead('GET /'));
  t.equal(byDefault.backoffMs(almostOne), 24, 'and restarts with each request');
  t.equal(begin({ retry_on: '5xx' }).backoffMs(0), 0);
  const own = begin({ retry_on: '5xx', retry_back_off: { base_interval: '0.100s', max_interval: '0.150s' } });
  t.same([own.backoffMs(0.5), own.backoffMs(0.5), own.backoffMs(0.5)], [50, 75, 75]);
  t.equal(new RetryPolicy({ retry_back_off: { base_interval: '0.000100s' } }, '').baseIntervalMs, 1);
  const runtime = runtimeOf({ 'upstream.base_retry_backoff_ms': '40' });
  const given = new RetryPolicy({}, '', runtime);
  t.same([given.baseIntervalMs, given.maxIntervalMs], [40, 400]);
  setValues(runtime, { 'upstream.base_retry_backoff_ms': '0' });
  t.same([given.baseIntervalMs, given.maxIntervalMs], [1, 10]);
  t.equal(new RetryPolicy({ retry_back_off: { base_interval: '0.1s' } }, '', runtime).baseIntervalMs, 100);
  t.throws(() => new RetryPolicy({ retry_back_off: { base_interval: '1s', max_interval: '0.5s' } }, 'x'), {
    code: 'CONFIG_INVALID',
  });
});

t.test('per_try_timeout is parsed', async (t) => {
  t.equal(new RetryPolicy({ per_try_timeout: '0.5s' }, 'x').perTryTimeoutMs, 500);
});

t.test('parseRetryOn returns unknown words', async (t) => {
  t.same(parseRetryOn(' 5xx , reset,,'), { conditions: RetryOn.ServerError | RetryOn.Reset, unknown: [] });
  t.same(parseRetryOn('5XX,often').unknown, ['5XX', 'often']);
});

t.test('rate-limit reset headers set the back-off', async (t) => {
  const reset_headers = [
    { name: 'Retry-After' },
    { name: 'X-Reset', format: 'UNIX_TIMESTAMP' as const },
    { name: 'x-later', format: 'SECONDS' as const },
  ];
  const cases: [string[], number, number][] = [
    // its lines, the shortest wait, the longest
    [['retry-after: 2'], 2000, 3000],
    [['RETRY-AFTER: 5', 'x-later: 1'], 5000, 7500],
    [['x-reset: 1004'], 4000, 6000],
    [['retry-after: 6', 'x-later: 1'], 1000, 1500],
    [['retry-after: soon', 'x-reset: 999', 'x-later: 3'], 3000, 4500],
    [['retry-after: 0'], 0, 100],
    [['x-reset: 2000'], 0, 100],
    [[], 0, 100],
  ];
  for (const [lines, shortest, longest] of cases) {
    const state = begin({
      retry_on: '5xx',
      num_retries: 2,
      retry_back_off: { base_interval: '0.1s', max_interval: '0.1s' },
      rate_limited_retry_back_off: { reset_headers, max_interval: '5s' },
    });
    for (const random of [0, 1]) {
      t.equal(state.onHeaders(503, responseHead(503, ...lines), NOW), RetryDecision.Retry);
      t.equal(state.waitsForReset, longest > 100, lines.join());
      t.equal(state.backoffMs(random), random === 0 ? shortest : longest, lines.join());
    }
  }
  const once = begin({ retry_on: '5xx,reset', num_retries: 2, rate_limited_retry_back_off: { reset_headers } });
  once.onHeaders(503, responseHead(503, 'retry-after: 300'), NOW);
  t.equal(once.backoffMs(0), 300_000, 'five minutes by default');
  t.equal(once.onReset(RetryReset.Reset, true), RetryDecision.Retry);
  t.equal(once.backoffMs(0), 0, 'it applies to one retry');
});
