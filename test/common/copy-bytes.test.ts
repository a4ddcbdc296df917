import t from 'tap';
import { copyBytes } from '../../src/common/copy-bytes.js';

t.test('ranges of any length are copied unchanged, and bytes around the target range are not written', async (t) => {
  const source = Uint8Array.from({ length: 80 }, (_byte, i) => 255 - i);
  for (let length = 0; length <= 40; length++) {
    for (let from = 0; from < 4; from++) {
      for (let to = 0; to < 4; to++) {
        const target = new Uint8Array(50);
        copyBytes(new DataView(target.buffer), to, new DataView(source.buffer), from, from + length);
        const expected = new Uint8Array(50);
        expected.set(source.subarray(from, from + length), to);
        t.same(target, expected, `${length} bytes from ${from} to ${to}`);
      }
    }
  }
});

t.test('a range at the end of both buffers is copied', async (t) => {
  for (let length = 0; length <= 9; length++) {
    const source = Uint8Array.from({ length }, (_byte, i) => i + 1);
    const target = new Uint8Array(length);
    copyBytes(new DataView(target.buffer), 0, new DataView(source.buffer), 0, length);
    t.same(target, source, `${length} bytes`);
  }
});
