// Integers without quotes mean in YAML what they mean to Envoy, whichever reader takes the text.

import t from 'tap';
import { yamlInteger } from '../../../src/config/text/yaml-integer.js';
import { bootstrapOf } from '../load-text.js';

/** What only the library reads. */
const NOT_PLAIN = '# é\n';

t.test('the mode of a socket is octal behind a zero', async (t) => {
  const modes = { '0400': 0o400, '0600': 0o600, '0777': 0o777, '00': 0, '0o400': 0o400, '0x100': 0o400, '384': 384 };
  for (const [written, mode] of Object.entries({ ...modes, "'0400'": 400, '08': 8, '0b1': undefined })) {
    const text = `admin: { address: { pipe: { path: /a, mode: ${written} } } }\n`;
    const modeOf = (form: string) => bootstrapOf(form).admin?.address?.pipe?.mode ?? 0;
    for (const form of [text, NOT_PLAIN + text]) {
      if (mode === undefined) t.throws(() => modeOf(form), { message: /expected a whole number, found '0b1'/ });
      else t.equal(modeOf(form), mode, written);
    }
  }
});

t.test('an integer has 64 bits and a sign', async (t) => {
  const cases: readonly (readonly [string, bigint | undefined])[] = [
    ['0', 0n],
    ['-010', -8n],
    ['+017', 15n],
    ['0X1f', 31n],
    ['-0x10', -16n],
    ['9223372036854775807', 2n ** 63n - 1n],
    ['9223372036854775808', undefined],
    ['-9223372036854775808', -(2n ** 63n)],
    ['0777777777777777777777', 2n ** 63n - 1n],
    ['01000000000000000000000', undefined],
    ['09', undefined],
    ['0o7', undefined],
    ['1.0', undefined],
    ['1e3', undefined],
    ['', undefined],
    ['9'.repeat(1_000_000), undefined],
  ];
  for (const [text, value] of cases) t.equal(yamlInteger(text), value, text.slice(0, 30));
});

t.test('a key is the text that is written', async (t) => {
  const text = `${NOT_PLAIN}node: { metadata: { 0400: a, 1.0: b, 12: c, True: d, "08": e } }\n`;
  t.same(bootstrapOf(text).node?.metadata, { '0400': 'a', '1.0': 'b', 12: 'c', True: 'd', '08': 'e' });
});
