// Changes of heads by external processors: what they can never do to a message.

import t from 'tap';
import { MutationRules } from '../../../../../src/extensions/filters/common/mutation-rules.js';
import type { HeaderOption } from '../../../../../src/extensions/filters/http/ext-proc/answer.js';
import { applyMutation } from '../../../../../src/extensions/filters/http/ext-proc/head-changes.js';
import type { HeaderBlock } from '../../../../../src/http/headers/header-block.js';
import { linesOf, requestHead, responseHead } from '../../../../http/routing/heads.js';

const ALL = new MutationRules({ allow_all_routing: true, allow_envoy: true }, '');

function field(key: string, value: string, isAppended = false): HeaderOption {
  return { header: { key, raw_value: Buffer.from(value, 'latin1') }, append: { value: isAppended } };
}

function change(
  block: HeaderBlock,
  kind: 'request' | 'response' | 'trailers',
  set: readonly HeaderOption[],
  removed: readonly string[] = [],
  takesLength = false,
): { mistake: string | undefined; rejected: number } {
  let rejected = 0;
  const how = { rules: ALL, kind, isReplacing: false, takesLength, onRejected: () => void rejected++ };
  const mistake = applyMutation(block, { set_headers: set, remove_headers: removed }, how);
  return { mistake, rejected };
}

t.test('a head stays framed as it is', async (t) => {
  const head = requestHead('POST /a', 'host: a', 'content-length: 5', 'connection: x');
  const framing = ['transfer-encoding', 'connection', 'te', 'upgrade', 'keep-alive', 'trailer', 'content-length'];
  const set = framing.map((name) => field(name, name === 'content-length' ? '7' : 'chunked'));
  t.same(change(head, 'request', set, framing), { mistake: undefined, rejected: 14 });
  t.same(linesOf(head), ['host: a', 'content-length: 5', 'connection: x']);
  t.same(change(head, 'request', [field('content-length', '7')], [], true), { mistake: undefined, rejected: 0 });
  t.same(change(head, 'request', [field('content-length', '-7')], [], true).rejected, 1);
  t.ok(linesOf(head).includes('content-length: 7'));
});

t.test('a request line stays valid', async (t) => {
  const head = requestHead('GET /a', 'host: a');
  const wrong = [
    field(':path', '/a b'),
    field(':path', ''),
    field(':path', 'http://other/'),
    field(':path', '/b', true),
    field(':method', 'CONNECT'),
    field(':method', 'HEAD'),
    field(':method', ''),
    field(':authority', 'a b'),
    field('host', ''),
    field(':scheme', 'ftp'),
    field(':status', '200'),
    field(':protocol', 'websocket'),
  ];
  for (const each of wrong) {
    const { mistake, rejected } = change(head, 'request', [each]);
    t.same([mistake, rejected], [undefined, 1], `${each.header!.key}: ${Buffer.from(each.header!.raw_value!)}`);
  }
  t.same([head.methodText(), head.pathText(), linesOf(head)], ['GET', '/a', ['host: a']]);
  change(head, 'request', [field(':path', '/b?c'), field(':method', 'put'), field(':authority', 'b:1')]);
  t.same([head.methodText(), head.pathText(), linesOf(head)], ['put', '/b?c', ['host: b:1']]);
});

t.test('a status stays one of a final response with or without a body', async (t) => {
  const head = responseHead(200);
  for (const status of ['100', '199', '204', '304', '1000', '2e2', '', '-200'])
    t.equal(change(head, 'response', [field(':status', status)]).rejected, 1, status);
  change(head, 'response', [field(':status', '404')]);
  t.equal(head.status, 404);
});

t.test('a status neither accepts nor refuses a tunnel in place of the host', async (t) => {
  for (const [from, to, rejected] of [
    [200, '403', 1],
    [403, '200', 1],
    [403, '407', 0],
  ] as const) {
    const head = responseHead(from);
    let count = 0;
    const how = { rules: ALL, kind: 'response', isReplacing: false, takesLength: false, isOfConnect: true } as const;
    applyMutation(head, { set_headers: [field(':status', to)] }, { ...how, onRejected: () => void count++ });
    t.equal(count, rejected, `${from} ${to}`);
  }
});

t.test('trailers have no pseudo fields', async (t) => {
  const trailers = responseHead(0, 'x-a: 1');
  t.equal(change(trailers, 'trailers', [field(':status', '500'), field(':path', '/')], [':path']).rejected, 3);
  t.same(linesOf(trailers), ['x-a: 1']);
});

t.test('invalid names and values stop the changes', async (t) => {
  for (const [name, value] of [
    ['', 'a'],
    ['a b', 'a'],
    ['a:', 'a'],
    ['a\r\nb', 'a'],
    [':', 'a'],
    ['a', 'b\r\nc: d'],
    ['a', '\0'],
  ] as const) {
    const head = requestHead('GET /', 'host: a');
    const { mistake } = change(head, 'request', [field(name, value), field('x-after', '1')]);
    t.equal(mistake, 'header_mutation_set_contains_invalid_character', JSON.stringify([name, value]));
    t.same(linesOf(head), ['host: a']);
  }
  t.match(change(requestHead('GET /'), 'request', [], ['a b']).mistake, 'remove_contains_invalid');
});
