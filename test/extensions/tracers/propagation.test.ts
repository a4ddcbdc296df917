// Trace contexts come from clients: none of them makes a parser throw, or is propagated as something else.

import t from 'tap';
import { Random } from '../../../src/common/random.js';
import type { HeaderBlock } from '../../../src/extensions/sdk.js';
import { readTraceParent } from '../../../src/extensions/tracers/common/w3c.js';
import { readSw8 } from '../../../src/extensions/tracers/skywalking/sw8.js';
import { readB3 } from '../../../src/extensions/tracers/zipkin/b3.js';

/** A head with these fields, as far as the parsers read it. */
function head(fields: Readonly<Record<string, string>>): HeaderBlock {
  const names = Object.keys(fields);
  const text = Object.values(fields).join('');
  const starts = names.map((_, index) => Object.values(fields).slice(0, index).join('').length);
  const find = ({ name }: { readonly name: string }) => names.indexOf(name);
  return {
    get: (key: { readonly name: string }) => fields[key.name],
    find,
    findNext: () => -1,
    valueStart: (index: number) => starts[index]!,
    valueEnd: (index: number) => starts[index]! + fields[names[index]!]!.length,
    memory: { text: (start: number, end: number) => text.slice(start, end) },
  } as unknown as HeaderBlock;
}

const SEEDS = [
  '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  '80f198ee56343ba864fe8b2a57d3eff7-e457b5a2e4d86bd1-1-05e3ac9a4f6e3b90',
  '1-dHJhY2UtaWQ=-c2VnLWlk-3-cHN2Yw==-cGluc3Q=-L2Vw-MS4yLjMuNDo4MA==',
  '463ac35c9f6413ad',
];
const HEX = /^[0-9a-f]+$/;

t.test('mutated contexts are read as valid IDs, or not at all', (t) => {
  const random = new Random(7);
  for (let round = 0; round < 20_000; round++) {
    const value = mutated(SEEDS[random.below(SEEDS.length)]!, random);
    const w3c = readTraceParent(head({ traceparent: value, tracestate: value }));
    if (typeof w3c === 'object' && !(isId(w3c.traceId, 32) && isId(w3c.spanId, 16))) t.fail(`traceparent ${value}`);
    const many = head({ 'x-b3-traceid': value, 'x-b3-spanid': value, 'x-b3-parentspanid': value });
    for (const b3 of [readB3(head({ b3: value })), readB3(many)]) {
      const ids = typeof b3 === 'object' ? b3.ids : undefined;
      if (ids === undefined) continue;
      const isValid = HEX.test(ids.traceId) && isId(ids.spanId, 16) && (ids.parentId === '' || isId(ids.parentId, 16));
      if (!isValid || ![16, 32].includes(ids.traceId.length)) t.fail(`b3 ${value}`);
    }
    const caller = readSw8(head({ sw8: value }));
    if (typeof caller === 'object' && !(caller.spanId >= 0 && caller.spanId < 2 ** 31)) t.fail(`sw8 ${value}`);
  }
  t.end();
});

t.test('the number of a SkyWalking span is an int32', (t) => {
  const sw8 = (spanId: string) => readSw8(head({ sw8: `1-dHJhY2U=-c2Vn-${spanId}-cw==-aQ==-L2U=-YQ==` }));
  t.match(sw8('2147483647'), { spanId: 2147483647, traceId: 'trace', endpoint: '/e' });
  for (const spanId of ['2147483648', '1e308', '0x10', '1.0', '', ' 1', 'x', '99999999999'])
    t.equal(sw8(spanId), undefined, spanId);
  t.end();
});

function isId(text: string, length: number): boolean {
  return text.length === length && HEX.test(text);
}

function mutated(text: string, random: Random): string {
  let result = text;
  for (let i = random.below(4); i > 0; i--) {
    const at = random.below(result.length + 1);
    const insert = random.below(3) === 0 ? '' : String.fromCharCode(random.below(256)).repeat(1 + random.below(3));
    result = result.slice(0, at) + insert + result.slice(at + random.below(4));
  }
  return result;
}
