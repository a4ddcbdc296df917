import t from 'tap';
import { murmurHash2 } from '../../src/common/murmur-hash2.js';
import { Word64 } from '../../src/common/xxh64.js';

t.test('hashes equal those of std::hash of the GNU library, for every kind of remainder', async (t) => {
  const known = {
    '': '553e93901e462a6e',
    a: '454ddee488c1ed6b',
    foo: '85a8e535edf11e5a',
    '127.0.0.1:90_0': '4e7fa1fbfddf33c0',
    '0123456789abcdef': '934b0d760642ed86',
    '10.0.0.1:8080_1023': '1d1755169540982f',
  };
  const hash = new Word64();
  for (const [text, expected] of Object.entries(known)) {
    const bytes = Buffer.from(`..${text}..`, 'latin1');
    murmurHash2(bytes, 2, text.length + 2, hash);
    const value = (BigInt(hash.hi >>> 0) << 32n) | BigInt(hash.lo >>> 0);
    t.equal(value.toString(16).padStart(16, '0'), expected, text);
  }
});
