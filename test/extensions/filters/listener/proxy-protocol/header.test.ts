// Parsing of PROXY protocol headers: valid, invalid and incomplete ones.

import fc from 'fast-check';
import t from 'tap';
import {
  MAX_HEADER_BYTES,
  readHeader,
  type Version,
  versionOf,
} from '../../../../../src/extensions/filters/listener/proxy-protocol/header.js';
import { addressText } from '../../../../../src/io/addresses/address.js';
import { addressesOf, binaryHeader } from './binary-header.js';

const BOTH: readonly Version[] = [1, 2];

/** Returns `source > destination length`, or the error. */
function read(bytes: Uint8Array): string | undefined {
  const version = versionOf(bytes, BOTH);
  if (version === undefined || version === 'incomplete') return version;
  const header = readHeader(version, bytes);
  if (typeof header === 'string') return header;
  const { addresses, length } = header;
  return `${addresses === undefined ? 'own' : `${addressText(addresses.source)} > ${addressText(addresses.destination)}`} ${length}`;
}

const line = (text: string) => read(Buffer.from(text, 'latin1'));

t.test('lines of version 1', async (t) => {
  t.equal(line('PROXY TCP4 192.0.2.1 198.51.100.2 4000 80\r\nGET /'), '192.0.2.1:4000 > 198.51.100.2:80 43');
  t.equal(line('PROXY TCP6 2001:DB8:0:0::1 ::1 65535 0\r\n'), '[2001:db8::1]:65535 > [::1]:0 40');
  t.equal(line('PROXY TCP6 ::ffff:192.0.2.1 ::ffff:198.51.100.2 1 2\r\n'), '192.0.2.1:1 > 198.51.100.2:2 53');
  t.equal(line('PROXY UNKNOWN\r\n'), 'own 15');
  t.equal(line('PROXY UNKNOWN whatever stands here\r\n'), 'own 36');
  const longest = `PROXY UNKNOWN ${'f'.repeat(91)}\r\n`;
  t.equal(longest.length, 107);
  t.equal(line(longest), 'own 107');
});

t.test('invalid lines of version 1', async (t) => {
  for (const text of [
    'PROXY TCP4 192.0.2.1 198.51.100.2 4000 80\n',
    'PROXY TCP4 192.0.2.1 198.51.100.2 4000\r\n',
    'PROXY TCP4 192.0.2.1 198.51.100.2 4000 80 1\r\n',
    'PROXY TCP4  192.0.2.1 198.51.100.2 4000 80\r\n',
    'PROXY TCP4 192.0.2.1 198.51.100.2 4000 65536\r\n',
    'PROXY TCP4 192.0.2.1 198.51.100.2 -1 80\r\n',
    'PROXY TCP4 192.0.2.1 198.51.100.2 4e3 80\r\n',
    'PROXY TCP4 192.0.2.256 198.51.100.2 4000 80\r\n',
    'PROXY TCP4 ::1 ::1 4000 80\r\n',
    'PROXY TCP6 192.0.2.1 198.51.100.2 4000 80\r\n',
    'PROXY TCP6 fe80::1%1 fe80::2 4000 80\r\n',
    'PROXY TCP4 0.0.0.0 198.51.100.2 4000 80\r\n',
    'PROXY TCP4 192.0.2.1 224.0.0.1 4000 80\r\n',
    'PROXY TCP4 255.255.255.255 198.51.100.2 4000 80\r\n',
    'PROXY TCP6 :: ::1 4000 80\r\n',
    'PROXY TCP6 ff02::1 ::1 4000 80\r\n',
    'PROXY UDP4 192.0.2.1 198.51.100.2 4000 80\r\n',
    'PROXY tcp4 192.0.2.1 198.51.100.2 4000 80\r\n',
    'PROXY \r\n',
    `PROXY UNKNOWN ${'f'.repeat(92)}\r\n`,
    `PROXY UNKNOWN ${'f'.repeat(1000)}`,
  ]) {
    t.equal(line(text), 'invalid', JSON.stringify(text));
  }
});

t.test('headers of version 2', async (t) => {
  t.equal(
    read(binaryHeader(0x21, 0x11, addressesOf('192.0.2.1', '198.51.100.2', 4000, 80))),
    '192.0.2.1:4000 > 198.51.100.2:80 28',
  );
  t.equal(
    read(binaryHeader(0x21, 0x21, addressesOf('2001:db8::1', '::1', 4000, 80))),
    '[2001:db8::1]:4000 > [::1]:80 52',
  );
  // A client over QUIC.
  t.equal(
    read(binaryHeader(0x21, 0x12, addressesOf('192.0.2.1', '198.51.100.2', 4000, 80))),
    '192.0.2.1:4000 > 198.51.100.2:80 28',
  );
  t.equal(
    read(binaryHeader(0x21, 0x22, addressesOf('2001:db8::1', '::1', 4000, 80))),
    '[2001:db8::1]:4000 > [::1]:80 52',
  );
  const more = Buffer.concat([addressesOf('192.0.2.1', '198.51.100.2', 1, 2), Buffer.from([4, 0, 1, 7, 1, 0, 0])]);
  t.equal(read(binaryHeader(0x21, 0x11, more)), '192.0.2.1:1 > 198.51.100.2:2 35');
  t.equal(read(binaryHeader(0x20, 0x00, Buffer.alloc(0))), 'own 16');
  t.equal(read(binaryHeader(0x20, 0x11, addressesOf('192.0.2.1', '198.51.100.2', 1, 2))), 'own 28');
  t.equal(read(binaryHeader(0x20, 0x00, Buffer.alloc(65535))), `own ${MAX_HEADER_BYTES}`);
});

t.test('invalid headers of version 2', async (t) => {
  const valid = addressesOf('192.0.2.1', '198.51.100.2', 4000, 80);
  for (const [what, family, rest] of [
    [0x11, 0x11, valid],
    [0x31, 0x11, valid],
    [0x22, 0x11, valid],
    [0x21, 0x10, valid],
    [0x21, 0x13, valid],
    [0x21, 0x01, valid],
    [0x21, 0x00, valid],
    [0x21, 0x31, Buffer.alloc(216, 'socket')],
    [0x21, 0x41, Buffer.alloc(216, 7)],
    [0x21, 0x11, valid.subarray(1)],
    [0x21, 0x21, valid],
    [0x21, 0x11, addressesOf('0.0.0.0', '198.51.100.2', 1, 2)],
    // TLVs whose head or value is truncated, or that exceed the header.
    [0x21, 0x11, Buffer.concat([valid, Buffer.from([4])])],
    [0x21, 0x11, Buffer.concat([valid, Buffer.from([4, 0])])],
    [0x21, 0x11, Buffer.concat([valid, Buffer.from([4, 0, 2, 7])])],
    [0x21, 0x11, Buffer.concat([valid, Buffer.from([4, 0, 1, 7, 4, 1, 0, 7])])],
  ] as const) {
    t.equal(read(binaryHeader(what, family, rest)), 'invalid', `${what} ${family} ${rest.length}`);
  }
});

t.test('a prefix of a header is incomplete, and bytes after a header are ignored', async (t) => {
  for (const whole of [
    Buffer.from('PROXY TCP4 192.0.2.1 198.51.100.2 4000 80\r\n'),
    binaryHeader(0x21, 0x21, addressesOf('2001:db8::1', '::1', 4000, 80)),
    binaryHeader(0x20, 0x00, Buffer.alloc(7)),
  ]) {
    const expected = read(whole);
    for (let length = 1; length < whole.length; length++) t.equal(read(whole.subarray(0, length)), 'incomplete');
    t.equal(read(Buffer.concat([whole, whole])), expected);
  }
});

t.test('other input is detected at the first byte that differs', async (t) => {
  t.equal(line('GET / HTTP/1.1\r\n'), undefined);
  t.equal(line('PROPFIND / HTTP/1.1\r\n'), undefined);
  t.equal(line('PRO'), 'incomplete');
  t.equal(line('PROX/'), undefined);
  t.equal(line('\r\n\r\nG'), undefined);
  t.equal(versionOf(Buffer.from('PROXY '), [2]), undefined);
  t.equal(versionOf(Buffer.from('\r\n\r\n\0'), [1]), undefined);
});

t.test('no input makes it throw', async () => {
  const start = fc.constantFrom(
    'PROXY ',
    'PROXY TCP4 ',
    '\r\n\r\n\0\r\nQUIT\n',
    '\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c',
    '',
  );
  fc.assert(
    fc.property(start, fc.uint8Array({ maxLength: 300 }), (text, rest) => {
      read(Buffer.concat([Buffer.from(text, 'latin1'), rest]));
    }),
    { numRuns: 3000 },
  );
});
