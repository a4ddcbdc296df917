// local_reply_config: the mapped status, headers and body of a local reply.

import t from 'tap';
import { compileSubstitutionFormat } from '../../../src/access-log/formats/substitution-format.js';
import { ResponseFlag } from '../../../src/access-log/stream/response-flags.js';
import { type BatonError, Mistakes } from '../../../src/common/errors/errors.js';
import { Random } from '../../../src/common/random.js';
import type { AccessLogFilter, LocalReplyConfig } from '../../../src/config/generated/api.js';
import { LocalReplyRules } from '../../../src/http/local-replies/local-reply-rules.js';
import { Runtime } from '../../../src/runtime/runtime.js';
import { type Fields, request, response, stream } from '../../access-log/stream.js';

const compile = (config: LocalReplyConfig) =>
  LocalReplyRules.of(config, { runtime: new Runtime(), random: new Random(1) });
const text = (format: string) => ({ text_format_source: { inline_string: format } });
const has = (default_value: number): AccessLogFilter => ({
  status_code_filter: { comparison: { op: 'EQ', value: { default_value, runtime_key: 'a' } } },
});
const added = (key: string, value: string, more: object = {}) => ({ header: { key, value }, ...more });

interface Reply {
  status?: number;
  body?: string | Uint8Array;
  head?: Fields;
  isGrpc?: boolean;
  info?: Parameters<typeof stream>[0];
}

/** Returns the rewritten reply: 503 'no luck' by default. */
function rewritten(
  config: LocalReplyConfig,
  { status = 503, body = 'no luck', head = {}, isGrpc = false, info = {} }: Reply = {},
) {
  const headers = response(status, head);
  const record = stream({ responseCode: 0, requestHeaders: request('/path', { 'x-a': 'of request' }), ...info });
  const result = compile(config)!.rewrite(headers, record, body, isGrpc);
  const fields: Record<string, string> = {};
  for (let index = 0; index < headers.size; index++) {
    if (headers.isRemoved(index)) continue;
    const name = headers.name(index);
    fields[name] = name in fields ? `${fields[name]}, ${headers.value(index)}` : headers.value(index);
  }
  return { status: headers.status, body: Buffer.from(result).toString('latin1'), fields, logged: record.responseCode };
}

t.test('an empty configuration compiles to nothing', async (t) => {
  t.equal(LocalReplyRules.of(undefined, { runtime: new Runtime(), random: new Random(1) }), undefined);
  t.equal(compile({}), undefined);
});

t.test('the first matching mapper applies', async (t) => {
  const config: LocalReplyConfig = {
    mappers: [
      { filter: has(404), status_code: 410, body: { inline_string: 'gone' } },
      { filter: has(503), status_code: 500, headers_to_add: [added('x-first', '1')] },
      { filter: { response_flag_filter: {} }, status_code: 299 },
    ],
  };
  t.match(rewritten(config, { status: 404 }), { status: 410, body: 'gone', logged: 410 });
  t.match(rewritten(config), { status: 500, body: 'no luck', fields: { 'x-first': '1' }, logged: 500 });
  const flagged = { responseFlags: ResponseFlag.NoRouteFound };
  t.match(rewritten(config, { status: 400, info: flagged }), { status: 299, body: 'no luck' });
  t.match(rewritten(config, { status: 400 }), { status: 400, body: 'no luck', logged: 400 }, 'no mapper matches');
});

t.test('a body is formatted with the status that the client gets', async (t) => {
  const body_format = text('%RESPONSE_CODE% %LOCAL_REPLY_BODY% %REQ(X-A)% %REQ(:PATH)%');
  t.match(rewritten({ body_format }), {
    body: '503 no luck of request /path',
    fields: { 'content-type': 'text/plain' },
  });
  const config: LocalReplyConfig = {
    mappers: [
      { filter: has(503), status_code: 500, body: { inline_string: 'other' } },
      { filter: has(404), status_code: 500, body_format_override: text('own: %LOCAL_REPLY_BODY%') },
    ],
    body_format,
  };
  t.match(rewritten(config), { body: '500 other of request /path' });
  t.match(rewritten(config, { status: 404 }), { status: 500, body: 'own: no luck' });
});

t.test('JSON values keep their types, and an empty string stays a string', async (t) => {
  const config: LocalReplyConfig = {
    body_format: { json_format: { code: '%RESPONSE_CODE%', message: '%LOCAL_REPLY_BODY%', none: '%REQ(X-NONE)%' } },
  };
  const { body, fields } = rewritten(config, { body: 'a "b"\n' });
  t.same(JSON.parse(body), { code: 503, message: 'a "b"\n', none: null });
  t.equal(body.at(-1), '\n');
  t.same(fields, { 'content-type': 'application/json' });
  t.same(JSON.parse(rewritten(config, { body: '' }).body), { code: 503, message: '', none: null });
  const omitting = { body_format: { ...config.body_format, omit_empty_values: true } };
  t.same(JSON.parse(rewritten(omitting, { body: '' }).body), { code: 503, message: '' });
});

t.test('bytes are kept', async (t) => {
  const bytes = Buffer.from('für €\xff', 'latin1');
  t.equal(
    rewritten({ body_format: text('<%LOCAL_REPLY_BODY%>') }, { body: bytes }).body,
    `<${bytes.toString('latin1')}>`,
  );
  const { body } = rewritten({ body_format: { json_format: { a: '%LOCAL_REPLY_BODY%' } } }, { body: Buffer.from('€') });
  t.same(JSON.parse(Buffer.from(body, 'latin1').toString()), { a: '€' });
  const inline_bytes = Buffer.from([0, 255, 10]).toString('base64');
  t.equal(rewritten({ mappers: [{ filter: has(503), body: { inline_bytes } }] }).body, '\0\xff\n');
});

t.test('the content type is that of the format, unless the headers set one for this body', async (t) => {
  const html = { ...text('<p>%LOCAL_REPLY_BODY%</p>'), content_type: 'text/html; charset=UTF-8' };
  const as = { 'content-type': 'text/x-route' };
  const typeOf = (config: LocalReplyConfig, reply?: Reply) => rewritten(config, reply).fields['content-type'];
  t.equal(typeOf({ body_format: html }), 'text/html; charset=UTF-8');
  t.equal(typeOf({ body_format: html }, { head: as }), 'text/html; charset=UTF-8', 'another body');
  t.equal(typeOf({ body_format: text('%LOCAL_REPLY_BODY%') }, { head: as }), 'text/x-route', 'the same body');
  const other: LocalReplyConfig = { mappers: [{ filter: has(503), body: { inline_string: 'other' } }] };
  t.equal(typeOf(other, { head: as }), 'text/plain');
  t.equal(typeOf(other), 'text/plain');
  const action = { append_action: 'OVERWRITE_IF_EXISTS_OR_ADD' as const };
  const headers_to_add = [added('content-type', 'text/x-mapper', action)];
  t.equal(
    typeOf({ mappers: [{ filter: has(503), headers_to_add, body_format_override: html }] }, { head: as }),
    'text/x-mapper',
  );
  const appended = [added('content-type', 'text/x-mapper')];
  const appending = { mappers: [{ filter: has(503), headers_to_add: appended, body_format_override: html }] };
  t.equal(typeOf(appending, { head: as }), 'text/x-mapper', 'a body has one type');
  t.equal(typeOf(appending), 'text/x-mapper');
  t.equal(
    typeOf({ mappers: [{ filter: has(503), headers_to_add }] }, { body: '' }),
    undefined,
    'an empty body has none',
  );
});

t.test('headers are added before the status changes, as their actions say', async (t) => {
  const headers_to_add = [
    added('x-code', '%RESPONSE_CODE% %RESP(:STATUS)% %REQ(X-A)%'),
    added('x-there', 'new', { append_action: 'OVERWRITE_IF_EXISTS' }),
    added('x-not-there', 'new', { append_action: 'OVERWRITE_IF_EXISTS' }),
    added('x-kept', 'new', { append_action: 'ADD_IF_ABSENT' }),
  ] as const;
  const config = { mappers: [{ filter: has(503), status_code: 500, headers_to_add }] };
  const { fields } = rewritten(config, { head: { 'x-there': 'old', 'x-kept': 'old' } });
  t.same(fields, { 'x-code': '503 503 of request', 'x-there': 'new', 'x-kept': 'old', 'content-type': 'text/plain' });
});

t.test('a status that has no body gets none', async (t) => {
  for (const status_code of [204, 304]) {
    const config = { mappers: [{ filter: has(503), status_code, body: { inline_string: 'never' } }] };
    t.same(rewritten(config, { head: { 'content-type': 'a/b' } }), {
      status: status_code,
      body: '',
      fields: {},
      logged: status_code,
    });
  }
});

t.test('for gRPC a JSON line has no line break', async (t) => {
  const json = { json_format: { message: '%LOCAL_REPLY_BODY%' } };
  t.equal(rewritten({ body_format: json }, { isGrpc: true }).body, '{"message":"no luck"}');
  t.equal(rewritten({ body_format: text('a\n') }, { isGrpc: true }).body, 'a\n', 'other text is unchanged');
  const mapped = { mappers: [{ filter: has(503), status_code: 204 }], body_format: text('a') };
  t.match(rewritten(mapped, { isGrpc: true }), { status: 204, body: 'a' });
});

t.test('a formatted body that would be too long is replaced by the unformatted one', async (t) => {
  const config = { body_format: text('%REQ(X-LONG)%'.repeat(40)) };
  const requestHeaders = request('/', { 'x-long': 'x'.repeat(30_000) });
  t.match(rewritten(config, { info: { requestHeaders } }), {
    body: 'no luck',
    fields: { 'content-type': 'text/plain' },
  });
  t.equal(
    rewritten({ body_format: text('%REQ(X-LONG)%'.repeat(20)) }, { info: { requestHeaders } }).body.length,
    600_000,
  );
});

t.test('request headers are retained only where they are used', async (t) => {
  const reads = (config: LocalReplyConfig) => compile(config)!.readsRequest;
  t.equal(reads({ body_format: text('%RESPONSE_CODE%') }), false);
  t.equal(reads({ mappers: [{ filter: has(1), headers_to_add: [added('a', 'b')] }] }), false);
  t.equal(reads({ body_format: text('%REQ(A)%') }), true);
  t.equal(reads({ mappers: [{ filter: has(1), headers_to_add: [added('a', '%REQ(B)%')] }] }), true);
  t.equal(reads({ mappers: [{ filter: has(1), body_format_override: text('%REQ(A)%') }] }), true);
  const header = { name: 'a', present_match: true };
  t.equal(reads({ mappers: [{ filter: { header_filter: { header } } }] }), true);
});

t.test('only the log type NotSet matches, because nothing is logged yet', async (t) => {
  const config = (type: 'NotSet' | 'DownstreamEnd') => ({
    mappers: [{ filter: { log_type_filter: { types: [type] } }, status_code: 500 }],
  });
  t.equal(rewritten(config('NotSet')).status, 500);
  t.equal(rewritten(config('DownstreamEnd')).status, 503);
});

t.test('all errors are reported, each with its position', async (t) => {
  const regex = { header: { name: 'a', string_match: { safe_regex: { regex: '(' } } } };
  const config: LocalReplyConfig = {
    mappers: [
      {
        filter: { header_filter: regex },
        body: { filename: '/none' },
        headers_to_add: [added('content-length', '1'), added('a', '%LOCAL_REPLY_BODY:1%')],
        body_format_override: { json_format: { a: { b: '%NONSENSE%' } } },
      },
      { filter: has(1), body: { inline_string: 'x'.repeat(1024 * 1024 + 1) } },
    ],
    body_format: text('%LOCAL_REPLY_BODY(1)%'),
  };
  const expected: [string, RegExp][] = [
    ['mappers[0].filter.header_filter.header.string_match.safe_regex.regex', /regular expression/],
    ['mappers[0].body.filename', /none/],
    ['mappers[0].body_format_override.json_format.a.b', /%NONSENSE%/],
    ['mappers[0].headers_to_add[0].header.key', /'content-length' cannot be set/],
    ['mappers[0].headers_to_add[1].header.value', /%LOCAL_REPLY_BODY% takes no length/],
    ['mappers[1].body', /1048577 bytes.*1048576/],
    ['body_format.text_format_source.inline_string', /takes no parameter/],
  ];
  let thrown: unknown;
  try {
    compile(config);
  } catch (error) {
    thrown = error;
  }
  const found = Mistakes.of(thrown) as readonly BatonError[];
  t.same(
    found.map(({ where }) => where),
    expected.map(([where]) => where),
  );
  expected.forEach(([where, what], index) => void t.match(found[index]!.message, what, where));
});

t.test('only local replies have a content type', async (t) => {
  t.throws(() => compileSubstitutionFormat({ ...text('a'), content_type: 'a/b' }), /log lines have no content type/);
});
