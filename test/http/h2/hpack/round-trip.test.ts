// What the encoder writes, the decoder reads, whatever the fields and table sizes are.

import fc from 'fast-check';
import t from 'tap';
import { DecoderBench, EncoderBench } from './bench.js';

const NAME = fc.oneof(
  fc.constantFrom(
    'content-type',
    'cookie',
    'authorization',
    'x-request-id',
    'etag',
    'vary',
    'x-a',
    'x-b',
    'set-cookie',
  ),
  fc.stringMatching(/^[!#$%&'*+.^_`|~a-zA-Z0-9-]{1,20}$/),
);
const VALUE = fc.oneof(
  fc.constantFrom('', 'text/html', 'a', '0', 'a value that is longer than twenty bytes'),
  fc
    .array(fc.integer({ min: 32, max: 255 }), { maxLength: 300 })
    .map((bytes) => String.fromCharCode(...bytes.filter((byte) => byte !== 127))),
);
const FIELDS = fc.array(
  fc.oneof(
    { weight: 8, arbitrary: fc.tuple(NAME, VALUE) },
    { weight: 1, arbitrary: fc.tuple(fc.constant(':authority'), VALUE) },
    { weight: 1, arbitrary: fc.tuple(fc.constant(':status'), fc.integer({ min: 200, max: 999 }).map(String)) },
  ),
  { maxLength: 30 },
);
const STEP = fc.oneof({ weight: 5, arbitrary: FIELDS }, { weight: 1, arbitrary: fc.integer({ min: 0, max: 5000 }) });

t.test('every list of fields is read as it was written', (t) => {
  fc.assert(
    fc.property(fc.array(STEP, { maxLength: 12 }), fc.boolean(), (steps, usesHuffman) => {
      const encoder = new EncoderBench(usesHuffman);
      const decoder = new DecoderBench(8192);
      for (const step of steps) {
        if (typeof step === 'number') {
          encoder.encoder.setLimit(step);
          continue;
        }
        const expected = step.map(([name, value]) => `${name.toLowerCase()}: ${value}`);
        const found = decoder.decode(encoder.encode(step));
        if (JSON.stringify(found) !== JSON.stringify(expected)) return t.same(found, expected);
        if (decoder.decoder.tableBytes !== encoder.encoder.tableBytes) return false;
      }
      return true;
    }),
    { numRuns: 500 },
  );
  t.end();
});

t.test('a field that repeats takes one byte', (t) => {
  const encoder = new EncoderBench();
  const fields = [
    ['Content-Type', 'application/json'],
    ['x-custom', 'some value'],
    ['server', 'baton'],
  ] as const;
  encoder.encode(fields);
  t.equal(encoder.encode(fields).length, 3);
  t.end();
});

t.test('it does so while other values come and go, and after the table has been emptied', (t) => {
  const encoder = new EncoderBench();
  const decoder = new DecoderBench();
  const constant = ['x-constant', 'some value'] as const;
  const send = (field: readonly [string, string]): number => {
    const block = encoder.encode([field]);
    t.same(decoder.decode(block), [field.join(': ')]);
    return block.length;
  };
  const lengths = Array.from({ length: 1000 }, (_, turn) => {
    send([`x-other-${turn % 7}`, `value ${turn}`]);
    return send(constant);
  });
  // The table keeps the about 90 newest fields, and an entry does not move when it is used.
  t.ok(lengths.filter((length) => length > 2).length <= 25, String(lengths));
  encoder.encoder.setLimit(0);
  send(constant);
  encoder.encoder.setLimit(4096);
  send(constant);
  t.equal(send(constant), 1);
  t.end();
});

t.test('secrets and values that do not repeat are not indexed', (t) => {
  const encoder = new EncoderBench();
  const fields = ['authorization', 'set-cookie', 'content-length', 'etag', 'cookie'].map(
    (name) => [name, 'x'] as const,
  );
  encoder.encode(fields);
  t.equal(encoder.encoder.tableBytes, 0);
  const first = (name: string) => encoder.encode([[name, 'x']])[0]! >> 4;
  t.equal(first('authorization'), 1, 'never indexed');
  t.equal(first('cookie'), 1, 'never indexed while it is short');
  t.equal(first('content-length'), 0);
  t.end();
});

t.test('any bytes are decoded or refused', (t) => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 5 }), (blocks) => {
      const decoder = new DecoderBench();
      for (const block of blocks) decoder.decode(block);
      return decoder.decoder.tableBytes <= 4096;
    }),
    { numRuns: 2000 },
  );
  t.end();
});
