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

t.test('the time does not depend on how bytes are divided', async (t) => {
  const payload = Buffer.concat([Buffer.alloc(100_000, 'a'), Buffer.from('b')]);
  const found = new PayloadSearch([payload, payload]);
  // With a comparison of the whole payload for each byte, this takes a minute.
  const byte = Buffer.from('a');
  for (let count = 0; count < 300_000; count++) found.take(byte);
  t.notOk(found.take(Buffer.from('b')));
  t.ok(found.take(payload));
});

t.test('a search finds what a search in the whole text finds', async (t) => {
  const random = (below: number) => Math.floor(Math.random() * below);
  const word = (length: number) => Array.from({ length }, () => 'ab'[random(2)]).join('');
  for (let round = 0; round < 3000; round++) {
    const payloads = Array.from({ length: 1 + random(3) }, () => word(1 + random(5)));
    const text = word(random(30));
    let from = 0;
    const isThere = payloads.every((each) => {
      const at = text.indexOf(each, from);
      from = at + each.length;
      return at >= 0;
    });
    t.equal(search(payloads, [...text, '']).at(-1), isThere, `${payloads.join()} in ${text}`);
  }
});
