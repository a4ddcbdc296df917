// Databases in the MaxMind DB file format: values of records, and files that are damaged or hostile.

import t from 'tap';
import { Mmdb, MmdbError } from '../../../../../src/extensions/filters/http/geoip/mmdb.js';
import { parseIp } from '../../../../../src/io/addresses/address.js';
import { control, encode, type Value, writeMmdb } from './write-mmdb.js';

const valueAt = (file: Buffer, ip: string, ...path: string[]) => {
  const database = new Mmdb(file);
  const place = database.lookUp(parseIp(ip)!);
  return place === undefined ? undefined : database.values(place, [path])[0];
};

const isRefused = (act: () => unknown): boolean => {
  try {
    act();
    return false;
  } catch (error) {
    return error instanceof MmdbError;
  }
};

const RECORD: Value = {
  city: { names: { de: 'Köln', en: 'Cologne' } },
  subdivisions: [{ iso_code: 'NW' }, { iso_code: 'XX' }],
  number: 4294967295,
  flag: true,
  long: 'x'.repeat(300),
};

t.test('values of the networks', async (t) => {
  const file = writeMmdb({ '10.0.0.0/8': RECORD, '10.1.0.0/16': { number: 7 }, '2001:db8::/32': { number: 6 } });
  t.equal(valueAt(file, '10.2.3.4', 'city', 'names', 'en'), 'Cologne');
  t.equal(valueAt(file, '10.2.3.4', 'subdivisions', '1', 'iso_code'), 'XX');
  t.equal(valueAt(file, '10.2.3.4', 'subdivisions', '2', 'iso_code'), undefined);
  t.equal(valueAt(file, '10.2.3.4', 'number'), 4294967295);
  t.equal(valueAt(file, '10.2.3.4', 'flag'), true);
  t.equal(valueAt(file, '10.2.3.4', 'long'), 'x'.repeat(300));
  t.equal(valueAt(file, '10.2.3.4', 'city', 'missing'), undefined);
  t.equal(valueAt(file, '10.2.3.4', 'city'), undefined, 'a map is no value');
  t.equal(valueAt(file, '10.1.3.4', 'number'), 7);
  t.equal(valueAt(file, '2001:db8::1', 'number'), 6);
  t.equal(valueAt(file, '192.0.2.1', 'number'), undefined);
  t.equal(new Mmdb(file).buildEpoch, 1_700_000_000);
});

t.test('files that are no databases are refused', async (t) => {
  const file = writeMmdb({ '10.0.0.0/8': RECORD });
  for (const bytes of [Buffer.alloc(0), Buffer.from('text'), file.subarray(0, -40), file.subarray(file.length - 200)])
    t.ok(isRefused(() => new Mmdb(bytes)));
});

t.test('a damaged file throws, or has no value; it neither hangs nor reads beyond its end', async (t) => {
  const file = writeMmdb({ '10.0.0.0/8': RECORD, '2001:db8::/32': RECORD });
  let seed = 1;
  const random = (below: number) => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed % below;
  };
  for (let round = 0; round < 3000; round++) {
    const bytes = Buffer.from(file);
    for (let change = 0; change <= random(4); change++) bytes[random(bytes.length)] = random(256);
    try {
      for (const ip of ['10.0.0.1', '2001:db8::1'])
        for (const path of [['city', 'names', 'en'], ['subdivisions', '0', 'iso_code'], ['long']])
          valueAt(bytes, ip, ...path);
    } catch (error) {
      if (!(error instanceof MmdbError)) throw error;
    }
  }
  t.pass();
});

t.test('records that grow without bound are refused', async (t) => {
  const loop = writeMmdb({ '10.0.0.0/8': 'place for a pointer' });
  const at = loop.indexOf('place for') - 1;
  // A pointer to itself.
  loop.set([1 << 5, 0], at);
  t.throws(() => valueAt(loop, '10.0.0.1', 'a'), /pointers lead to pointers/);
  const many = writeMmdb({ '10.0.0.0/8': 'place for a map' });
  many.set(control(7, 60_000), many.indexOf('place for') - 1);
  t.ok(isRefused(() => valueAt(many, '10.0.0.1', 'a')));
  const deep = Buffer.concat([...Array.from({ length: 9000 }, () => control(11, 2)), encode('x')]);
  const nested = writeMmdb({ '10.0.0.0/8': 'x'.repeat(280) });
  nested.set(deep.subarray(0, 280), nested.indexOf('xxxx') - 2);
  t.ok(isRefused(() => valueAt(nested, '10.0.0.1', '1', '1')));
});
