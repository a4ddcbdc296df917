import t from 'tap';
import { parseForm, parseQuery } from '../../../src/admin/http/messages/query-parameters.js';
import { runSync } from '../../../src/common/time/next-turn.js';

t.test('the first of equal names counts, and a plus is a space only in a form', async (t) => {
  const text = 'a=1+2&&a=3&b&=c&d=%2B%zz%ff%C3%A9&';
  t.same(
    [...parseQuery(text).entries()],
    [
      ['a', '1+2'],
      ['b', ''],
      ['', 'c'],
      ['d', '+%zz\ufffdé'],
    ],
  );
  t.equal(runSync(parseForm(text)).get('a'), '1 2');
  t.ok(parseQuery('').isEmpty);
  t.ok(parseQuery('&&').isEmpty);
});

t.test('a form with many parameters is parsed in steps', async (t) => {
  const count = 100_000;
  const steps = parseForm(Array.from({ length: count }, (_, i) => `k${i}=%31`).join('&'));
  let yields = 0;
  for (;;) {
    const { done, value } = steps.next();
    if (done) {
      t.equal([...value.entries()].length, count);
      t.equal(value.get('k99999'), '1');
      break;
    }
    yields++;
  }
  t.ok(yields >= count / 1000, `${yields} steps`);
});
