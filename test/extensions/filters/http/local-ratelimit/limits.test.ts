// The local rate limit filter with a test clock and test buckets: which buckets a request takes from, and its response headers.

import t from 'tap';
import type { LocalRateLimit, RateLimit } from '../../../../../src/config/generated/api.js';
import type { HttpChainContext } from '../../../../../src/extensions/factories.js';
import { localRateLimit } from '../../../../../src/extensions/filters/http/local-ratelimit/index.js';
import {
  HeadersStatus,
  type HttpFilter,
  type LocalReply,
  type StreamControl,
  type WorkerContext,
} from '../../../../../src/extensions/sdk.js';
import { compileRateLimits, RouteRateLimits } from '../../../../../src/http/routing/actions/rate-limits.js';
import { Runtime } from '../../../../../src/runtime/runtime.js';
import { OwnTokenBucket, type TokenBucket, type TokenRate } from '../../../../../src/upstream/token-bucket.js';
import { stream } from '../../../../access-log/stream.js';
import { linesOf, requestHead, responseHead } from '../../../../http/routing/heads.js';

const ALWAYS = { default_value: { numerator: 100 } };
const bucket = (max_tokens: number, more: object = {}) => ({ max_tokens, fill_interval: '3600s', ...more });
const limit = (more: Partial<LocalRateLimit> = {}): LocalRateLimit => ({
  stat_prefix: 'limit',
  token_bucket: bucket(2),
  filter_enabled: ALWAYS,
  filter_enforced: ALWAYS,
  ...more,
});
/** Descriptors: one for each user header of a request. */
const BY_USERS: readonly RateLimit[] = ['x-user', 'x-other'].map((header_name) => ({
  actions: [{ request_headers: { header_name, descriptor_key: 'user' } }],
}));
const ofUser = (value: string, tokens: object) => ({ entries: [{ key: 'user', value }], token_bucket: tokens });

/** Creates a filter. `ask` returns '' if a request passes, otherwise the status; then the rate limit headers of the response. */
function filtering(config: LocalRateLimit, routes: readonly LocalRateLimit[] = []) {
  const buckets = new Map<string, TokenBucket>();
  const counts: Record<string, number> = {};
  const clock = { monotonicMs: 5000 };
  const runtime = new Runtime();
  const context = {
    clock,
    node: {},
    random: { nextUint32: () => 0 },
    runtime,
    stats: {
      dynamicCounter: (prefix: string, name: string) => {
        counts[prefix + name] ??= 0;
        return { increment: () => counts[prefix + name]!++ };
      },
    },
    tokenBucket: (name: string, rate: TokenRate) => {
      const known = buckets.get(name) ?? new OwnTokenBucket(rate);
      buckets.set(name, known);
      return known;
    },
  } as unknown as WorkerContext;
  const factory = localRateLimit.createOnWorker(config, context, { place: 'here' } as HttpChainContext);
  const ofRoute =
    routes.length === 0 ? undefined : localRateLimit.compileRouteConfig!(routes as never, 'route', runtime, 'there');
  const rateLimits = RouteRateLimits.of(compileRateLimits(BY_USERS, 'rate_limits'), [], undefined);
  const info = stream();
  const ask = (...lines: string[]): string => {
    let status = '';
    const response = responseHead(200);
    const control = {
      info,
      route: () => ({ clusterName: 'api', rateLimits }),
      sendLocalReply(reply: LocalReply) {
        status = String(reply.status);
        reply.editHeaders?.(response);
      },
    } as unknown as StreamControl;
    const filter = factory.create(control, ofRoute) as HttpFilter;
    const passes = filter.decodeHeaders!(requestHead('GET /', ...lines), true) === HeadersStatus.Continue;
    if (passes !== (status === '')) throw new Error('status and local reply disagree');
    filter.encodeHeaders?.(response, true);
    return [status, ...linesOf(response).map((line) => line.replace('x-ratelimit-', ''))].join(' ').trim();
  };
  return { ask, clock, counts };
}

const withHeaders = { enable_x_ratelimit_headers: 'DRAFT_VERSION_03' } as const;

t.test('headers contain the remaining tokens and the whole seconds until the next one', async (t) => {
  const { ask, clock } = filtering(limit(withHeaders));
  t.equal(ask(), 'limit: 2 remaining: 1 reset: 0');
  t.equal(ask(), 'limit: 2 remaining: 0 reset: 3600');
  clock.monotonicMs += 1;
  t.equal(ask(), '429 limit: 2 remaining: 0 reset: 3600', 'a part of a second is rounded up');
  clock.monotonicMs += 1999;
  t.equal(ask(), '429 limit: 2 remaining: 0 reset: 3598');
  clock.monotonicMs += 3_598_000;
  t.equal(ask(), 'limit: 2 remaining: 0 reset: 3600');
});

t.test('each interval adds tokens_per_fill tokens, by default one', async (t) => {
  for (const [more, expected] of [
    [{}, ['', '429', '429']],
    [{ tokens_per_fill: 2 }, ['', '', '429']],
    [{ tokens_per_fill: 200 }, ['', '', '429']],
  ] as const) {
    const { ask, clock } = filtering(limit({ token_bucket: bucket(2, more) }));
    t.same([ask(), ask(), ask()], ['', '', '429']);
    clock.monotonicMs += 3_600_000;
    t.same([ask(), ask(), ask()], expected);
  }
});

t.test('a limit that is not enforced only counts', async (t) => {
  const { ask, counts } = filtering(limit({ filter_enforced: undefined, stat_prefix: 'a:b' }));
  t.same([ask(), ask(), ask()], ['', '', '']);
  t.same(counts, {
    'a_b.http_local_rate_limit.enabled': 3,
    'a_b.http_local_rate_limit.ok': 2,
    'a_b.http_local_rate_limit.rate_limited': 1,
    'a_b.http_local_rate_limit.shadow_mode': 0,
    'a_b.http_local_rate_limit.enforced': 0,
  });
});

t.test('descriptors with equal limits have separate buckets', async (t) => {
  const descriptors = [ofUser('ann', bucket(1)), ofUser('bob', bucket(1))];
  const { ask } = filtering(limit({ descriptors, token_bucket: bucket(100) }));
  t.same([ask('x-user: ann'), ask('x-user: ann'), ask('x-user: bob'), ask('x-user: bob')], ['', '429', '', '429']);
  t.equal(ask('x-user: eve'), '', 'the default limit applies to other users');
});

t.test('the slowest of several limits is tried first and is shown in headers', async (t) => {
  const descriptors = [ofUser('fast', bucket(1, { fill_interval: '60s' })), ofUser('slow', bucket(2))];
  const { ask } = filtering(limit({ ...withHeaders, descriptors, token_bucket: bucket(100) }));
  t.equal(ask('x-user: fast', 'x-other: slow'), 'limit: 2 remaining: 1 reset: 0');
  t.equal(
    ask('x-user: fast', 'x-other: slow'),
    '429 limit: 1 remaining: 0 reset: 60',
    'headers show the limit that refuses',
  );
  t.equal(
    ask('x-user: slow'),
    '429 limit: 2 remaining: 0 reset: 3600',
    'its token was taken before the other limit refused',
  );
});

t.test('the most specific configuration applies, with its own bucket', async (t) => {
  const { ask, counts } = filtering(limit({ token_bucket: bucket(1) }), [
    limit({ token_bucket: bucket(9), stat_prefix: 'host' }),
    limit({ token_bucket: bucket(2), stat_prefix: 'route' }),
  ]);
  t.same([ask(), ask(), ask()], ['', '', '429']);
  t.equal(counts['route.http_local_rate_limit.enabled'], 3);
  t.equal(counts['limit.http_local_rate_limit.enabled'], 0);
  t.equal(counts['host.http_local_rate_limit.enabled'], undefined);
});

t.test('refused requests get retry-after if it is enabled', async (t) => {
  const { ask, clock } = filtering(limit({ enable_retry_after_header: true, token_bucket: bucket(1) }));
  t.equal(ask(), '');
  t.equal(ask(), '429 retry-after: 3600');
  clock.monotonicMs += 3_590_000;
  t.equal(ask(), '429 retry-after: 10');
});

t.test('limits in shadow mode count but do not refuse', async (t) => {
  const shadow = { ...ofUser('a', bucket(1)), shadow_mode: true };
  const { ask, counts } = filtering(limit({ token_bucket: bucket(5), descriptors: [shadow, ofUser('b', bucket(1))] }));
  t.same(
    [1, 2, 3].map(() => ask('x-user: a')),
    ['', '', ''],
  );
  const of = (outcome: string) => counts[`limit.http_local_rate_limit.${outcome}`];
  t.same(['ok', 'rate_limited', 'shadow_mode', 'enforced'].map(of), [1, 2, 2, 0]);
  t.equal(ask('x-user: a', 'x-other: b'), '', 'the enforced limit has a token');
  t.equal(ask('x-user: a', 'x-other: b'), '429', 'and refuses without one');
  t.equal(ask('x-user: a'), '', 'the last token of the default limit');
  t.equal(ask('x-user: a'), '429');
  t.same(['ok', 'rate_limited', 'shadow_mode', 'enforced'].map(of), [1, 6, 4, 2]);
});

t.test('a bucket with max_tokens 0 refuses everything', async (t) => {
  const { ask } = filtering(limit({ ...withHeaders, token_bucket: { fill_interval: '1s' } }));
  t.equal(ask(), '429 limit: 0 remaining: 0 reset: 1');
  const { ask: described } = filtering(limit({ descriptors: [ofUser('a', { fill_interval: '1s' })] }));
  t.equal(described('x-user: a'), '429');
  t.equal(described('x-user: b'), '');
});

t.test('fill_interval must be at least 50 ms', async (t) => {
  const mistakes = (fill_interval: string) => {
    const found: string[] = [];
    const config = limit({ token_bucket: { max_tokens: 1, fill_interval } });
    localRateLimit.validate!(config as never, (path, message) => void found.push(`${path}: ${message}`), false);
    return found;
  };
  t.same(mistakes('0.05s'), []);
  t.same(mistakes('0.049s'), ['token_bucket.fill_interval: it must be at least 50 ms']);
});
