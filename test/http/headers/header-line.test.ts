// Precomputed header lines are written unchanged.

import assert from 'node:assert/strict';
import fc from 'fast-check';
import t from 'tap';
import { headerKey } from '../../../src/common/text/header-names.js';
import { HeaderBlock } from '../../../src/http/headers/header-block.js';
import { HeaderLine, PreparedText } from '../../../src/http/headers/header-line.js';
import { newMemory } from '../h1/wire.js';

const memory = newMemory();
const KEY = headerKey('x-a');

t.test('a line of any bytes and any length is written unchanged', (t) => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), fc.boolean(), (bytes, isAscii) => {
      const value = isAscii ? bytes.map((byte) => byte & 127) : bytes;
      const headers = new HeaderBlock(memory);
      new HeaderLine(KEY, value).addTo(headers);
      new HeaderLine(KEY, 'next').addTo(headers);
      assert.equal(headers.value(0), Buffer.from(value).toString('latin1'));
      assert.equal(memory.text(headers.nameStart(0), headers.lineEnd(0)), `x-a: ${headers.value(0)}\r\n`);
      assert.equal(headers.value(1), 'next');
      headers.drop();
      memory.endTurn();
    }),
  );
  t.end();
});

t.test('a text can be written in pieces, and repeatedly', (t) => {
  const text = new PreparedText(64);
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'binary-ascii', maxLength: 12 }), { maxLength: 5 }), (pieces) => {
      let at = text.write(0, '');
      for (const piece of pieces) at = text.write(at, piece);
      text.copyTo(memory, 64);
      assert.equal(memory.text(64, 64 + text.length), pieces.join(''));
    }),
  );
  t.end();
});
