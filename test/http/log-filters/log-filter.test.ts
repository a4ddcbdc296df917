// Access log filters: which streams each of them accepts.

import t from 'tap';
import { ResponseFlag } from '../../../src/access-log/stream/response-flags.js';
import type { StreamInfo } from '../../../src/access-log/stream/stream-info.js';
import { TextHeaders } from '../../../src/access-log/stream/text-headers.js';
import type { BatonError } from '../../../src/common/errors/errors.js';
import { Random } from '../../../src/common/random.js';
import type { AccessLogFilter, ComparisonFilter_Op, HeaderMatcher } from '../../../src/config/generated/api.js';
import { compileLogFilter } from '../../../src/http/log-filters/compile-log-filter.js';
import { FilteredLogger } from '../../../src/http/log-filters/filtered-logger.js';
import { Runtime } from '../../../src/runtime/runtime.js';
import { valueOfText } from '../../../src/runtime/value.js';
import { fields, request, response, stream, tcpStream } from '../../access-log/stream.js';

const runtime = new Runtime();
let version = 0;
const setRuntime = (values: Record<string, string>) => {
  const entries = Object.entries(values).map(([key, text]) => [key, valueOfText(text)] as const);
  runtime.apply({ version: ++version, values: new Map(entries) });
};
const compile = (config: AccessLogFilter) =>
  compileLogFilter(config, 'filter', { runtime, random: new Random(7), recordType: 'DownstreamEnd' });
const passes = (config: AccessLogFilter, info: StreamInfo) => compile(config).matches(info);

const bound = (op: ComparisonFilter_Op, default_value: number) => ({
  comparison: { op, value: { default_value, runtime_key: 'bound' } },
});

t.test('a status is compared, and is 0 without a response', async (t) => {
  const cases: [op: ComparisonFilter_Op, value: number, passed: number[]][] = [
    ['EQ', 404, [404]],
    ['GE', 404, [404, 500]],
    ['LE', 404, [0, 200, 404]],
    ['EQ', 0, [0]],
    ['NE', 404, [0, 200, 500]],
  ];
  for (const [op, value, passed] of cases) {
    const filter = compile({ status_code_filter: bound(op, value) });
    const found = [0, 200, 404, 500].filter((responseCode) => filter.matches(stream({ responseCode })));
    t.same(found, passed, `${op} ${value}`);
  }
  const equal = { comparison: { value: { default_value: 200, runtime_key: 'bound' } } };
  t.ok(passes({ status_code_filter: equal }, stream({ responseCode: 200 })), 'EQ is the default');
  t.ok(
    passes({ status_code_filter: { comparison: { value: { runtime_key: 'bound' } } } }, stream({ responseCode: 0 })),
  );
});

t.test('a duration is compared in whole milliseconds', async (t) => {
  t.ok(passes({ duration_filter: bound('EQ', 226) }, stream({ durationMs: 226.9 })));
  t.notOk(passes({ duration_filter: bound('GE', 227) }, stream({ durationMs: 226.9 })));
});

t.test('a runtime value overrides the bound as long as it is a number', async (t) => {
  const filter = compile({ status_code_filter: bound('GE', 500) });
  const info = stream({ responseCode: 404 });
  t.notOk(filter.matches(info));
  setRuntime({ bound: '400' });
  t.ok(filter.matches(info));
  setRuntime({ bound: 'many' });
  t.notOk(filter.matches(info));
  setRuntime({});
  t.notOk(filter.matches(info));
});

t.test('health checks are excluded', async (t) => {
  t.ok(passes({ not_health_check_filter: {} }, stream()));
  t.notOk(passes({ not_health_check_filter: {} }, stream({ isHealthCheck: true })));
});

t.test('sampling by request id is the same at every hop', async (t) => {
  const withId = (id: string) => stream({ requestHeaders: request('/', { 'x-request-id': id }) });
  const share = (numerator: number, denominator: 'HUNDRED' | 'MILLION' = 'HUNDRED') =>
    compile({ runtime_filter: { runtime_key: 'share', percent_sampled: { numerator, denominator } } });
  // 0xcc21d9b0 is 3424770480: 80 of 100, 770480 of a million.
  const info = withId('CC21d9b0-cf5c-432b-8c7e-98aeb7988cd2');
  t.notOk(share(80).matches(info));
  t.ok(share(81).matches(info));
  t.notOk(share(770_480, 'MILLION').matches(info));
  t.ok(share(770_481, 'MILLION').matches(info));
  const filter = share(0);
  t.notOk(filter.matches(info));
  setRuntime({ share: '81' });
  t.ok(filter.matches(info), 'runtime overrides the numerator');
  setRuntime({ share: '1000' });
  t.ok(filter.matches(info), 'any size');
  setRuntime({});
  t.notOk(compile({ runtime_filter: { runtime_key: 'share' } }).matches(info), 'the default is 0 %');
});

t.test('sampling is random without an id, or when configured', async (t) => {
  const rate = (filter: AccessLogFilter, info: StreamInfo) => {
    const compiled = compile(filter);
    let passed = 0;
    for (let i = 0; i < 10_000; i++) if (compiled.matches(info)) passed++;
    return passed / 100;
  };
  const half = { runtime_key: 'share', percent_sampled: { numerator: 50 } };
  for (const id of ['', 'short', 'not-hexa-decimal']) {
    const info = stream({ requestHeaders: request('/', { 'x-request-id': id }) });
    const found = rate({ runtime_filter: half }, info);
    t.ok(found > 45 && found < 55, `'${id}': ${found} %`);
  }
  t.ok(Math.abs(rate({ runtime_filter: half }, tcpStream()) - 50) < 5, 'of TCP connections');
  const independent = { ...half, use_independent_randomness: true };
  t.ok(Math.abs(rate({ runtime_filter: independent }, stream()) - 50) < 5, 'of one id');
});

t.test('request headers are matched as in routes, and TCP has none', async (t) => {
  const cases: [HeaderMatcher, http: boolean, tcp: boolean][] = [
    [{ name: 'X-Custom', present_match: true }, true, false],
    [{ name: 'x-none', present_match: true }, false, false],
    [{ name: 'x-none', present_match: true, invert_match: true }, true, true],
    [{ name: 'user-agent', string_match: { prefix: 'nsq' } }, true, false],
    [{ name: 'user-agent', string_match: { prefix: 'nsq' }, invert_match: true }, false, false],
    [
      { name: 'x-none', string_match: { safe_regex: { regex: '.*' } }, treat_missing_header_as_empty: true },
      true,
      true,
    ],
    [{ name: ':path', string_match: { contains: 'locations?x' } }, true, false],
    [{ name: ':method', string_match: { exact: 'GET' } }, true, false],
    [{ name: ':authority', string_match: { safe_regex: { regex: 'loc.*' } } }, true, false],
    [{ name: 'server', present_match: true }, false, false],
  ];
  for (const [header, http, tcp] of cases) {
    t.equal(passes({ header_filter: { header } }, stream()), http, JSON.stringify(header));
    t.equal(passes({ header_filter: { header } }, tcpStream()), tcp, `TCP: ${JSON.stringify(header)}`);
  }
});

t.test('header sections that are plain texts are matched alike', async (t) => {
  const requestHeaders = TextHeaders.ofRequest('GET', '/stats?a', {
    host: 'admin',
    Cookie: ['a=1', 'b=2'],
    Via: ['a', '', 'b'],
  });
  const cases: [HeaderMatcher, boolean][] = [
    [{ name: ':path', string_match: { prefix: '/stats' } }, true],
    [{ name: ':method', string_match: { exact: 'POST' } }, false],
    [{ name: ':scheme', string_match: { exact: 'http' } }, true],
    [{ name: ':authority', string_match: { safe_regex: { regex: 'ad.*' } } }, true],
    [{ name: 'cookie', string_match: { exact: 'b=2' } }, true],
    [{ name: 'cookie', string_match: { exact: 'b=2' }, invert_match: true }, false],
    [{ name: 'via', string_match: { exact: 'a,b' } }, true],
    [{ name: 'x-none', present_match: true }, false],
  ];
  for (const [header, passed] of cases) {
    const filter = compile({ header_filter: { header } });
    for (let i = 0; i < 3; i++) t.equal(filter.matches(stream({ requestHeaders })), passed, JSON.stringify(header));
  }
});

t.test('a stream with one of the flags passes, or with any flag when none are listed', async (t) => {
  const flags = (flags?: string[]) => compile({ response_flag_filter: flags ? { flags } : {} });
  const broken = stream({ responseFlags: ResponseFlag.UpstreamConnectionFailure | ResponseFlag.UpstreamOverflow });
  t.notOk(flags().matches(stream()));
  t.ok(flags().matches(broken));
  t.ok(flags(['DC', 'UF']).matches(broken));
  t.notOk(flags(['DC', 'UH']).matches(broken));
  t.notOk(flags(['UF']).matches(stream()));
  // Of a request, and of a TCP connection.
  t.ok(flags(['URX']).matches(stream({ responseFlags: ResponseFlag.UpstreamRetryLimitExceeded })));
  t.ok(flags(['URX']).matches(stream({ responseFlags: ResponseFlag.ConnectAttemptsExceeded })));
});

t.test('every flag of the API is one that a stream can have', async (t) => {
  const known =
    'LH UH UT LR UR UF UC UO NR DI FI RL UAEX RLSE DC URX SI IH DPE UMSDR RFCF NFCF DT UPE NC OM DF DO DR'.split(' ');
  for (const flag of known) {
    const filter = compile({ response_flag_filter: { flags: [flag] } });
    const bits = Array.from({ length: 31 }, (_, bit) => 1 << bit);
    const found = bits.filter((responseFlags) => filter.matches(stream({ responseFlags })));
    t.equal(found.length, flag === 'URX' ? 2 : 1, flag);
  }
});

t.test('the gRPC status is that of the trailers, else of the headers, else derived from the HTTP status', async (t) => {
  const said = (status: string) => fields({ 'grpc-status': status });
  const head = (status: string) => response(200, { 'grpc-status': status });
  const cases: [
    string,
    Partial<StreamInfo>,
    'OK' | 'UNKNOWN' | 'INTERNAL' | 'UNAVAILABLE' | 'UNAUTHENTICATED' | '-',
  ][] = [
    ['trailers', { responseTrailers: said('0'), responseHeaders: head('13') }, 'OK'],
    ['the head', { responseTrailers: fields({ other: '1' }), responseHeaders: head('16') }, 'UNAUTHENTICATED'],
    ['an empty one', { responseTrailers: said(''), responseHeaders: head('13') }, 'INTERNAL'],
    ['503', { responseCode: 503 }, 'UNAVAILABLE'],
    ['200', { responseCode: 200 }, 'UNKNOWN'],
    ['no answer', { responseCode: 0 }, 'UNKNOWN'],
    ['an unknown number', { responseTrailers: said('17') }, '-'],
    ['a long one', { responseTrailers: said('000000000000000000000') }, '-'],
    ['no number', { responseTrailers: said('1x') }, '-'],
  ];
  const names = ['OK', 'UNKNOWN', 'INTERNAL', 'UNAVAILABLE', 'UNAUTHENTICATED'] as const;
  for (const [what, changes, expected] of cases) {
    const info = stream({ responseHeaders: undefined, ...changes });
    const found = names.filter((name) => passes({ grpc_status_filter: { statuses: [name] } }, info));
    t.same(found, expected === '-' ? [] : [expected], what);
    const excluded = names.filter((name) => !passes({ grpc_status_filter: { statuses: [name], exclude: true } }, info));
    t.same(excluded, found, `${what}, excluded`);
  }
});

t.test('all records have one type', async (t) => {
  t.ok(passes({ log_type_filter: { types: ['DownstreamStart', 'DownstreamEnd'] } }, stream()));
  t.notOk(passes({ log_type_filter: { types: ['TcpConnectionEnd'] } }, stream()));
  t.notOk(passes({ log_type_filter: { types: ['DownstreamEnd'], exclude: true } }, stream()));
  t.notOk(passes({ log_type_filter: {} }, stream()));
});

t.test('filters are combined, and read whatever each of them reads', async (t) => {
  const slow: AccessLogFilter = { duration_filter: bound('GE', 100) };
  const failed: AccessLogFilter = { status_code_filter: bound('GE', 500) };
  const named: AccessLogFilter = { header_filter: { header: { name: 'X-Custom', present_match: true } } };
  const status: AccessLogFilter = { grpc_status_filter: { statuses: ['OK'] } };
  const both = compile({ and_filter: { filters: [slow, failed] } });
  const either = compile({ or_filter: { filters: [slow, failed] } });
  const infos = [
    stream({ durationMs: 1, responseCode: 200 }),
    stream({ durationMs: 100, responseCode: 200 }),
    stream({ durationMs: 1, responseCode: 500 }),
    stream({ durationMs: 100, responseCode: 500 }),
  ];
  t.same(
    infos.map((info) => both.matches(info)),
    [false, false, false, true],
  );
  t.same(
    infos.map((info) => either.matches(info)),
    [false, true, true, true],
  );
  const sampled: AccessLogFilter = { runtime_filter: { runtime_key: 'share' } };
  const { needs } = compile({ or_filter: { filters: [{ and_filter: { filters: [named, sampled] } }, status] } });
  t.same([...needs.request], ['x-custom', 'x-request-id']);
  t.same([...needs.response], ['grpc-status']);
  t.equal(both.needs.request.size, 0);
});

t.test(
  'a filtered log reads what log and filter read, writes accepted streams, and closes with its filter',
  async (t) => {
    const done: string[] = [];
    const needs = { request: new Set(['x-a']), response: new Set(['x-b']), trailers: new Set<string>() };
    const logger = {
      needs,
      log: ({ responseCode }: StreamInfo) => void done.push(String(responseCode)),
      close: () => void done.push('closed'),
    };
    const filter = compile({
      and_filter: {
        filters: [
          { status_code_filter: bound('GE', 500) },
          { header_filter: { header: { name: 'x-custom', present_match: true } } },
        ],
      },
    });
    const filtered = new FilteredLogger(logger, filter);
    t.same([...filtered.needs.request], ['x-a', 'x-custom']);
    t.same([...filtered.needs.response], ['x-b']);
    for (const responseCode of [200, 503, 404, 500]) filtered.log(stream({ responseCode }));
    filtered.close();
    t.same(done, ['503', '500', 'closed']);
  },
);

t.test('all errors of a filter are reported, each with its position', async (t) => {
  const wrong: AccessLogFilter = {
    header_filter: { header: { name: 'x', string_match: { safe_regex: { regex: '(' } } } },
  };
  const unnamed: AccessLogFilter = { header_filter: { header: { name: 'a b', present_match: true } } };
  const nested = { and_filter: { filters: [wrong, { or_filter: { filters: [unnamed, wrong] } }] } };
  const places = [
    'filter.and_filter.filters[0].header_filter.header.string_match.safe_regex.regex',
    'filter.and_filter.filters[1].or_filter.filters[0].header_filter.header.name',
    'filter.and_filter.filters[1].or_filter.filters[1].header_filter.header.string_match.safe_regex.regex',
  ];
  try {
    compile(nested);
    t.fail('it was not refused');
  } catch (error) {
    const all = (error as { all: readonly BatonError[] }).all;
    t.same(
      all.map(({ where }) => where),
      places,
    );
  }
});
