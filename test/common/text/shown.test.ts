// How texts of users and peers are shown.

import t from 'tap';
import { onOneLine, printableLines, shownName } from '../../../src/common/text/shown.js';

t.test('a name ends no line, and tells a terminal nothing', async (t) => {
  t.equal(shownName('a\u001b[31mb\nc\u202e\u009b'), 'a\\u001b[31mb\\nc\\u202e\\u009b');
  t.equal(shownName('plain-name_1.äöü'), 'plain-name_1.äöü');
});

t.test('of a long name the beginning is shown, and how much is left out', async (t) => {
  t.equal(shownName('x'.repeat(256)), 'x'.repeat(256));
  t.equal(shownName('x'.repeat(1_000_256)), `${'x'.repeat(256)}… (1000000 more characters)`);
});

t.test('texts of several lines stay such where they may', async (t) => {
  t.equal(printableLines('a\n\tb\u0007\r'), 'a\n\tb\\u0007\\u000d');
  t.equal(onOneLine('a\n\tb'), 'a\\n\\u0009b');
});
