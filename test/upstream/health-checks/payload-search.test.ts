import t from 'tap';
import { PayloadSearch } from '../../../src/upstream/health-checks/payload-search.js';

function search(payloads: readonly string[], pieces: readonly string[]): boolean[] {
  const search = new PayloadSearch(payloads.map((text) => Buffer.from(text)));
  return pieces.map((piece) => search.take(Buffer.from(piece)));
}

t.test('payloads are found in order, with anything between them', async (t) => {
  t.same(search(['one', 'two'], ['..one..two..']), [true]);
  t.same(search(['one', 'two'], ['..two..one..']), [false]);
  t.same(search(['one', 'two'], ['..two..one..', 'two']), [false, true]);
});

t.test('a payload may be split', async (t) => {
  t.same(search(['hello'], ['he', 'l', 'lo']), [false, false, true]);
  t.same(search(['aab', 'b'], ['aa', 'a', 'bb']), [false, false, true]);
  t.same(search(['one', 'two'], ['onetw', 'o']), [false, true]);
});

t.test('no byte matches twice', async (t) => {
  t.same(search(['aa', 'aa'], ['aaa', 'a']), [false, true]);
});
