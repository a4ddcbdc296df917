import fc from 'fast-check';
import t from 'tap';
import { valueOfJson, valueOfText } from '../../src/runtime/value.js';

t.test('a text is parsed as a number, a fraction or plain text', async (t) => {
  const cases: [text: string, readings: object][] = [
    ['12', { double: 12, integer: 12, fraction: undefined }],
    [' 0\n', { double: 0, integer: 0 }],
    ['3.99', { double: 3.99, integer: 3 }],
    ['-1.5e1', { double: -15, integer: undefined }],
    ['TRUE', { double: undefined, integer: undefined }],
    ['false', { double: undefined, fraction: undefined }],
    ['0x10', { double: undefined, integer: undefined, fraction: undefined }],
    ['', { double: undefined, fraction: undefined }],
    ['{numerator: 5, denominator: TEN_THOUSAND}', { fraction: { numerator: 5, denominator: 10_000 } }],
    ['{"numerator": 5, "denominator": "MILLION"}', { fraction: { numerator: 5, denominator: 1_000_000 } }],
    ['numerator: 5\ndenominator: HUNDRED\n', { fraction: { numerator: 5, denominator: 100 } }],
    ['numerator: 5', { double: undefined, fraction: { numerator: 5, denominator: 100 } }],
    ['numerator: 5.5', { fraction: undefined }],
    ['numerator: 4294967296', { fraction: undefined }],
    ['numerator: 5, denominator: toString', { fraction: undefined }],
    ['{numerator: 5', { fraction: undefined }],
  ];
  for (const [text, readings] of cases) t.match(valueOfText(text), { text, ...readings }, text);
});

t.test('a text that is nearly a number is parsed in linear time', async (t) => {
  const text = `${'9'.repeat(2_000_000)}x`;
  t.match(valueOfText(text), { text, double: undefined, fraction: undefined });
});

t.test('values of a static layer keep their JSON type and have a text', async (t) => {
  t.match(valueOfJson(0.5), { text: '0.5', double: 0.5, integer: 0 });
  t.match(valueOfJson(true), { text: 'true', double: undefined });
  t.match(valueOfJson('7'), { text: '7', integer: 7 });
  const share = { numerator: 5, denominator: 'MILLION' };
  t.match(valueOfJson(share), { text: JSON.stringify(share), fraction: { numerator: 5, denominator: 1_000_000 } });
  t.match(valueOfJson({}), { text: '{}', fraction: { numerator: 0, denominator: 100 } });
  t.equal(valueOfJson(null), undefined);
  t.equal(valueOfJson([1]), undefined);
});

t.test('every text can be parsed and is kept', async () => {
  fc.assert(fc.property(fc.string(), (text) => valueOfText(text).text === text));
  fc.assert(
    fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (number) => {
      const { double, integer } = valueOfText(String(number));
      return double === number && integer === (number >= 0 && number <= 2 ** 64 ? Math.floor(number) : undefined);
    }),
  );
});
