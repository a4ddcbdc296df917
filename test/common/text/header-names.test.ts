// Names of header fields as numbers.

import t from 'tap';
import {
  ConnectionHeader,
  equalsFolded,
  HEADER_NAMES,
  headerIdOf,
  headerKey,
  isConnectionHeader,
  OTHER_HEADER,
} from '../../../src/common/text/header-names.js';

function idOf(name: string): number {
  const bytes = Buffer.from(`..${name}..`, 'latin1');
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  return headerIdOf(bytes, view, 2, bytes.length - 2);
}

t.test('every known name is found in any case, and no similar name is', (t) => {
  for (let id = 1; id < HEADER_NAMES.length; id++) {
    const name = HEADER_NAMES[id]!;
    t.equal(idOf(name), id, name);
    t.equal(idOf(name.toUpperCase()), id);
    t.equal(headerKey(name.toUpperCase()).id, id);
    t.equal(idOf(`${name}x`), OTHER_HEADER);
    if (!HEADER_NAMES.includes(name.slice(0, -1))) t.equal(idOf(name.slice(0, -1)), OTHER_HEADER);
    for (let i = 0; i < name.length; i++) {
      const found = Array.from({ length: 256 }, (_, byte) => String.fromCharCode(byte)).filter(
        (letter) => idOf(`${name.slice(0, i)}${letter}${name.slice(i + 1)}`) === id,
      );
      // Only the letter itself in either case matches, of all bytes.
      t.same(found, [...new Set([name[i]!.toUpperCase(), name[i]!])], `${name}, byte ${i}`);
    }
  }
  t.equal(idOf(''), OTHER_HEADER);
  t.equal(idOf('x'.repeat(200)), OTHER_HEADER);
  t.end();
});

t.test('the numbers of ConnectionHeader are those of the names', (t) => {
  t.equal(idOf('host'), ConnectionHeader.Host);
  t.equal(idOf('connection'), ConnectionHeader.Connection);
  t.equal(idOf('content-length'), ConnectionHeader.ContentLength);
  t.equal(idOf('transfer-encoding'), ConnectionHeader.TransferEncoding);
  t.equal(idOf('keep-alive'), ConnectionHeader.KeepAlive);
  t.equal(idOf('proxy-connection'), ConnectionHeader.ProxyConnection);
  t.equal(idOf('te'), ConnectionHeader.Te);
  t.equal(idOf('trailer'), ConnectionHeader.Trailer);
  t.equal(idOf('upgrade'), ConnectionHeader.Upgrade);
  t.equal(idOf('expect'), ConnectionHeader.Expect);
  t.same(HEADER_NAMES.filter((_, id) => isConnectionHeader(id)).at(-1), 'expect');
  t.equal(isConnectionHeader(OTHER_HEADER), false);
  // A header block has a mask of two 32-bit words.
  t.ok(HEADER_NAMES.length <= 64);
  t.end();
});

t.test('comparison ignores the case of letters only', (t) => {
  const bytes = Buffer.from('Content-TYPE[@');
  t.equal(equalsFolded(bytes, 0, 12, Buffer.from('content-type')), true);
  t.equal(equalsFolded(bytes, 12, 14, Buffer.from('{`')), false);
  t.equal(equalsFolded(bytes, 0, 11, Buffer.from('content-type')), false);
  t.end();
});
