// Attributes of a stream by their paths, for readers other than expressions, and the heads that an expression needs.

import t from 'tap';
import { attributeReader } from '../../../src/access-log/attributes/attributes.js';
import { expressionOfExpr, expressionOfText } from '../../../src/access-log/attributes/stream-expression.js';
import { StreamInfo } from '../../../src/access-log/stream/stream-info.js';
import { TextHeaders } from '../../../src/access-log/stream/text-headers.js';
import { celJson } from '../../../src/cel/output.js';
import { BatonError } from '../../../src/common/errors/errors.js';

const info = new StreamInfo();
info.requestHeaders = TextHeaders.ofRequest('GET', '/a?b=1', { host: 'example.com', 'x-id': ['1', '2'] });
info.scheme = 'http';
info.ownDynamicMetadata().set('ns', { list: [1, { deep: 'é' }], text: 'x' });
info.ownFilterState().set('key', { text: 'value', isReadOnly: false, sharing: 'NONE' });

t.test('a path leads to an attribute, or to a part of its value', async (t) => {
  const cases: [path: string[], value: unknown][] = [
    [['request', 'path'], '/a?b=1'],
    [['request', 'url_path'], '/a'],
    [['request', 'query'], 'b=1'],
    [['request', 'headers', 'X-Id'], '1,2'],
    [['request', 'headers', ':authority'], 'example.com'],
    [['request', 'headers', 'bad name'], undefined],
    [['metadata', 'filter_metadata', 'ns', 'text'], 'x'],
    [
      ['metadata', 'filter_metadata', 'ns', 'list'],
      [1, { deep: 'é' }],
    ],
    [['metadata', 'filter_metadata', '__proto__'], undefined],
    [['filter_state', 'key'], Buffer.from('value').toString('base64')],
    [['response', 'code'], undefined],
    [['request', 'constructor'], undefined],
    [['constructor', 'name'], undefined],
    [['request', 'path', 'more'], undefined],
    [['unknown'], undefined],
    [[], undefined],
  ];
  for (const [path, expected] of cases) {
    const value = attributeReader(path)(info);
    const json = value === undefined ? undefined : celJson(value);
    t.same(json === undefined ? undefined : JSON.parse(JSON.stringify(json)), expected, path.join('.'));
  }
});

t.test('a group has attributes as its entries', async (t) => {
  t.equal(
    expressionOfText("request['path'] == '/a?b=1' && has(request.host) && !has(request.nope)").evaluate(info),
    true,
  );
  t.equal(expressionOfText('request.nope').evaluate(info), undefined);
});

t.test('an expression names the heads that must be kept for it', async (t) => {
  const { needs } = expressionOfText("[{'a': .response.code}][0].a == 1 || .request.size > 0");
  t.ok(needs.request.size > 0 && needs.response.size > 0 && needs.trailers.size > 0);
  t.equal(expressionOfText('source.port == 1').needs.request.size, 0);
});

t.test('an expression that is a message has the same value', async (t) => {
  const path = { select_expr: { operand: { ident_expr: { name: '.request' } }, field: 'path' } };
  const prefix = { const_expr: { string_value: '/a' } };
  const call = { call_expr: { target: path, function: 'startsWith', args: [prefix] } };
  t.equal(expressionOfExpr(call).evaluate(info), true);
  const list = { list_expr: { elements: [prefix, { const_expr: { int64_value: '5' } }] } };
  t.equal(
    expressionOfExpr({ call_expr: { function: '@in', args: [{ const_expr: { uint64_value: '5' } }, list] } }).evaluate(
      info,
    ),
    true,
  );
  for (const message of [undefined, {}, { comprehension_expr: {} }, { struct_expr: { message_name: 'a.B' } }])
    t.throws(() => expressionOfExpr(message), BatonError);
});
