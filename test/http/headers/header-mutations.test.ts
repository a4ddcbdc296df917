// Header mutations as configured: in order, and with values formatted per request.

import t from 'tap';
import { StreamInfo } from '../../../src/access-log/stream/stream-info.js';
import type { HeaderValueOption } from '../../../src/config/generated/api.js';
import { compileHeaderMutations } from '../../../src/http/headers/header-mutations.js';
import { linesOf, requestHead } from '../routing/heads.js';

const at = (list: string, index: number): string => `request_headers_${list}[${index}]`;

/** Returns the fields of `lines` after additions and removals. */
function apply(toAdd: readonly HeaderValueOption[], toRemove: readonly string[], lines: readonly string[]): string[] {
  const head = requestHead('GET /', ...lines);
  const info = new StreamInfo();
  info.requestHeaders = head;
  info.inferredRemoteAddress = '203.0.113.7:4711';
  compileHeaderMutations([{ toAdd, toRemove, where: at }])!.apply(head, info);
  return linesOf(head);
}

t.test('append_action selects append, overwrite or add', async (t) => {
  const option = (append_action?: HeaderValueOption['append_action']): HeaderValueOption[] => [
    { header: { key: 'X', value: 'new' }, append_action },
  ];
  t.same(apply(option(), [], ['x: old']), ['x: old', 'x: new'], 'appends by default');
  t.same(apply(option('APPEND_IF_EXISTS_OR_ADD'), [], []), ['x: new']);
  t.same(apply(option('ADD_IF_ABSENT'), [], ['x: old']), ['x: old']);
  t.same(apply(option('ADD_IF_ABSENT'), [], []), ['x: new']);
  t.same(apply(option('OVERWRITE_IF_EXISTS_OR_ADD'), [], ['x: old', 'y: 1', 'X: older']), ['y: 1', 'x: new']);
  t.same(apply(option('OVERWRITE_IF_EXISTS_OR_ADD'), [], []), ['x: new']);
  t.same(apply(option('OVERWRITE_IF_EXISTS'), [], ['x: old']), ['x: new']);
  t.same(apply(option('OVERWRITE_IF_EXISTS'), [], []), []);
  t.same(apply([{ header: { key: 'x', value: 'new' }, append: false }], [], ['x: old']), ['x: new']);
  t.same(apply([{ header: { key: 'x', value: 'new' }, append: false }], [], []), ['x: new']);
  t.same(apply([{ header: { key: 'x', value: 'new' }, append: true }], [], ['x: old']), ['x: old', 'x: new']);
});

t.test('removals come before additions, overwrites before appends', async (t) => {
  t.same(apply([{ header: { key: 'x', value: 'new' } }], ['X', 'y'], ['x: old', 'y: 1', 'z: 1']), ['z: 1', 'x: new']);
  const both: HeaderValueOption[] = [
    { header: { key: 'x', value: 'appended' } },
    { header: { key: 'x', value: 'set' }, append_action: 'OVERWRITE_IF_EXISTS_OR_ADD' },
  ];
  t.same(apply(both, [], ['x: old']), ['x: set', 'x: appended']);
});

t.test('values and conditions do not see changes by their own list', async (t) => {
  const set = (key: string, value: string): HeaderValueOption => ({
    header: { key, value },
    append_action: 'OVERWRITE_IF_EXISTS_OR_ADD',
  });
  t.same(apply([set('a', '%REQ(b)%'), set('b', '%REQ(a)%')], [], ['a: 1', 'b: 2']), ['a: 2', 'b: 1'], 'they swap');
  t.same(
    apply([set('x', 'new'), { header: { key: 'y', value: '%REQ(x)%' } }], [], ['x: old']),
    ['x: new', 'y: old'],
    'a value from before',
  );
  const first: HeaderValueOption = { header: { key: 'x', value: 'appended' } };
  t.same(
    apply([first, { header: { key: 'x', value: 'absent' }, append_action: 'ADD_IF_ABSENT' }], [], []),
    ['x: appended', 'x: absent'],
    'it was absent',
  );
  t.same(
    apply([set('x', 'set'), { header: { key: 'x', value: 'again' }, append_action: 'OVERWRITE_IF_EXISTS' }], [], []),
    ['x: set'],
    'it did not exist',
  );
  t.same(
    apply([{ header: { key: 'y', value: '%REQ(x)%' }, keep_empty_value: true }, first], ['x'], ['x: old']),
    ['y: ', 'x: appended'],
    'but removals of the same level come first',
  );
});

t.test('empty values are omitted, unless they are to be kept', async (t) => {
  t.same(apply([{ header: { key: 'x' } }], [], []), []);
  t.same(apply([{ header: { key: 'x' }, keep_empty_value: true }], [], []), ['x: ']);
  t.same(apply([{ header: { key: 'x', value: '%REQ(nothing)%' } }], [], []), []);
  t.same(apply([{ header: { key: 'x', value: '%REQ(nothing)%' }, keep_empty_value: true }], [], []), ['x: ']);
});

t.test('values are formatted for each request', async (t) => {
  t.same(apply([{ header: { key: 'x', value: 'from %DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%' } }], [], []), [
    'x: from 203.0.113.7',
  ]);
  t.same(apply([{ header: { key: 'x', value: '%REQ(a)%/%REQ(b)%' } }], [], ['a: 1', 'b: 2']), [
    'a: 1',
    'b: 2',
    'x: 1/2',
  ]);
  t.same(apply([{ header: { key: 'x', value: '100%%' } }], [], []), ['x: 100%']);
});

t.test('bytes are sent as configured', async (t) => {
  const utf8 = Buffer.from('é').toString('latin1');
  t.same(apply([{ header: { key: 'x', value: 'é' } }], [], []), [`x: ${utf8}`]);
  t.same(apply([{ header: { key: 'x', raw_value: Buffer.from([0x61, 0xff]).toString('base64') } }], [], []), [
    'x: a\u00ff',
  ]);
  t.same(apply([{ header: { key: 'x', value: 'é%REQ(a)%' } }], [], ['a: \u00ff']), ['a: \u00ff', `x: ${utf8}\u00ff`]);
});

t.test('an empty configuration compiles to nothing', async (t) => {
  t.equal(compileHeaderMutations([{ toAdd: [], toRemove: undefined, where: at }]), undefined);
});

t.test('essential fields can be neither removed nor set', async (t) => {
  const compile = (toAdd: HeaderValueOption[], toRemove: string[]) => (): unknown =>
    compileHeaderMutations([{ toAdd, toRemove, where: at }]);
  t.throws(compile([], ['Host']), { code: 'CONFIG_INVALID' });
  t.throws(compile([], [':path']), { code: 'CONFIG_INVALID' });
  t.throws(compile([{ header: { key: ':authority', value: 'x' } }], []), { code: 'CONFIG_INVALID' });
  t.throws(compile([{ header: { key: 'x', value: '%' } }], []), { code: 'CONFIG_INVALID' });
  t.throws(compile([{ header: { key: 'x' }, append: true, append_action: 'ADD_IF_ABSENT' }], []), {
    code: 'CONFIG_INVALID',
  });
});
