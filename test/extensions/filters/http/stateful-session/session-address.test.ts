// Addresses in cookies and headers of clients: what is written is read again, and no bytes of a client can do harm.

import t from 'tap';
import { Random } from '../../../../../src/common/random.js';
import {
  addressOfCookie,
  addressOfHeader,
  cookieOf,
  headerOf,
} from '../../../../../src/extensions/filters/http/stateful-session/session-address.js';

const base64 = (bytes: readonly number[]) => Buffer.from(bytes).toString('base64');

t.test('an address is read as it was written, until it expires', async (t) => {
  for (const address of ['127.0.0.1:80', '[2001:db8::1]:65535', '/run/socket', 'x'.repeat(200)]) {
    t.equal(addressOfHeader(headerOf(address)), address);
    t.equal(addressOfCookie(cookieOf(address, 0), 4_000_000_000), address);
    t.equal(addressOfCookie(cookieOf(address, 1_800_000_000), 1_800_000_000), address);
    t.equal(addressOfCookie(cookieOf(address, 1_800_000_000), 1_800_000_001), '');
  }
});

t.test('unknown fields are skipped, and damaged messages are taken as a text', async (t) => {
  const address = [0x0a, 1, 0x61];
  t.equal(
    addressOfCookie(base64([0x18, 1, ...address, 0x22, 2, 1, 2, 0x29, 1, 2, 3, 4, 5, 6, 7, 8, 0x35, 1, 2, 3, 4]), 0),
    'a',
  );
  for (const damaged of [
    [0x0a, 5, 0x61],
    [0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
    [0x10, 0x80],
    [0x10, ...new Array<number>(11).fill(0xff)],
    [0x0b, 0x0c],
    [0x02, 1, 1],
    [0x29, 1],
  ])
    t.equal(addressOfCookie(base64(damaged), 0), Buffer.from(damaged).toString('latin1'));
});

t.test('texts that are no Base64, or too long, name no host', async (t) => {
  for (const text of ['', '=', 'a', 'ab', 'abc', 'ab=c', 'ab!=', 'abcd\n', 'YQ', `${'A'.repeat(1024)}AAAA`])
    t.same([addressOfHeader(text), addressOfCookie(text, 0)], ['', ''], text.slice(0, 10));
});

t.test('any bytes are read without an exception', async (t) => {
  const random = new Random(7);
  for (let round = 0; round < 20_000; round++) {
    const bytes = Array.from({ length: random.below(24) }, () =>
      random.below(3) === 0 ? random.below(32) : random.below(256),
    );
    if (typeof addressOfCookie(base64(bytes), 100) !== 'string') t.fail(`no text for ${bytes}`);
  }
});
