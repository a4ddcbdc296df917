// Escaping of texts of users and peers for logs and messages.

import t from 'tap';
import { indentedLines, joinedLines, oneWord, onOneLine, shownName } from '../../../src/common/text/shown.js';

t.test('a name contains no line breaks and no terminal control characters', async (t) => {
  t.equal(shownName('a\u001b[31mb\nc\u202e\u009b'), 'a\\u001b[31mb\\nc\\u202e\\u009b');
  t.equal(shownName('plain-name_1.äöü'), 'plain-name_1.äöü');
});

t.test('a long name is cut, and the number of omitted characters is shown', async (t) => {
  t.equal(shownName('x'.repeat(256)), 'x'.repeat(256));
  t.equal(shownName('x'.repeat(1_000_256)), `${'x'.repeat(256)}… (1000000 more characters)`);
});

t.test('line breaks are kept where they are allowed, and further lines are indented', async (t) => {
  t.equal(indentedLines('a\n\tb\u0007\r\n\n[c'), 'a\n  \tb\\u0007\\u000d\n  \n  [c');
  t.equal(joinedLines('a\n\tb\r'), 'a\\n\tb\\u000d');
  t.equal(onOneLine('a\n\tb'), 'a\\n\\u0009b');
  t.equal(oneWord('a b\n\u001b[31m\u009b'), 'a_b_\\u001b[31m\\u009b');
});
