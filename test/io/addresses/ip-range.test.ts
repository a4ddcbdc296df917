import fc from 'fast-check';
import t from 'tap';
import { formatIp } from '../../../src/io/addresses/address.js';
import { ipRange, isInRange, rangeText } from '../../../src/io/addresses/ip-range.js';

t.test('an address is in a range when the prefix bits are equal', async () => {
  const pair = fc.constantFrom(4, 16).chain((length) =>
    fc.record({
      prefix: fc.uint8Array({ minLength: length, maxLength: length }),
      bits: fc.nat(length * 8),
      flipped: fc.nat(length * 8 - 1),
    }),
  );
  fc.assert(
    fc.property(pair, ({ prefix, bits, flipped }) => {
      const address = Uint8Array.from(prefix);
      address[flipped >> 3]! ^= 0x80 >> (flipped & 7);
      const range = ipRange(formatIp(prefix), bits)!;
      return isInRange(range, prefix) && isInRange(range, address) === flipped >= bits;
    }),
    { numRuns: 1000 },
  );
});

t.test('host bits are zeroed, an overlong prefix means all bits, and families do not mix', async (t) => {
  t.equal(rangeText(ipRange('172.31.255.255', 12)!), '172.16.0.0/12');
  t.equal(rangeText(ipRange('2001:db8::ff', 200)!), '2001:db8::ff/128');
  t.notOk(isInRange(ipRange('0.0.0.0', 0)!, new Uint8Array(16)));
  t.equal(ipRange('localhost', 8), undefined);
});
