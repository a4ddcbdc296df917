// The forms of the admin home page.

import t from 'tap';
import { HANDLERS } from '../../../src/admin/handlers/index.js';
import { endpointRows } from '../../../src/admin/html/forms.js';
import { parseQuery } from '../../../src/admin/http/messages/query-parameters.js';

const handler = {
  path: '/a/b',
  mutates: false,
  help: 'does <this> & that',
  parameters: [
    { name: 'flag', help: 'a flag', isFlag: true },
    { name: 'text', help: "a 'text'" },
    { name: 'choice', help: 'one of three', choices: ['', 'x', 'y'] },
    { name: 'level', help: 'with a preset', choices: ['low', 'high'], preset: 'high' },
  ],
  handle: () => ({ body: '' }),
};

t.test('an endpoint without parameters is a link, a mutating one a button', async (t) => {
  const plain = { ...handler, parameters: [] };
  t.match(endpointRows(plain, { index: 3 }), "<td><a href='a/b'>a/b</a></td><td>does &lt;this&gt; &amp; that</td>");
  const form = "<form action='a/b' method='post' id='a/b' class='home-form'><button class='button'>a/b</button></form>";
  t.match(endpointRows({ ...plain, mutates: true }, { index: 3 }), form);
});

t.test('parameters are rows that belong to the form, each with a label', async (t) => {
  const rows = endpointRows(handler, { index: 3 });
  t.match(rows, "<form action='a/b' method='get' id='a/b' class='home-form'><button class='link'>a/b</button></form>");
  t.match(rows, "<input type='checkbox' name='flag' id='param-3-a-b-flag' form='a/b'>");
  t.match(rows, "<label for='param-3-a-b-text'>a &#39;text&#39;</label>");
  t.match(rows, "<input type='text' name='text' id='param-3-a-b-text' form='a/b' value=''");
  t.match(rows, "<select name='choice' id='param-3-a-b-choice' form='a/b'><option value='' selected></option>");
  t.match(rows, "<option value='high' selected>high</option>");
});

t.test('a form begins with the requested values, escaped', async (t) => {
  const values = parseQuery(`flag=false&text=${encodeURIComponent(`'><script>"&`)}&choice=y&level=nowhere`);
  const rows = endpointRows(handler, { index: 1, values });
  t.match(rows, "form='a/b' checked>");
  t.match(rows, "value='&#39;&gt;&lt;script&gt;&quot;&amp;'");
  t.match(rows, "<option value='y' selected>");
  t.notMatch(rows, "<option value='high' selected>");
  t.notMatch(rows, '<script');
});

/** Parameters whose presence counts: an empty text field of a form would set them. */
const FLAGS = [
  'usedonly',
  'invert_filter',
  'text_readouts',
  'prom_protobuf',
  'graceful',
  'skip_exit',
  'inboundonly',
  'include_eds',
];

t.test('every parameter whose presence counts is a checkbox', async (t) => {
  for (const { path, parameters } of HANDLERS) {
    for (const { name, isFlag } of parameters) {
      if (FLAGS.includes(name)) t.equal(isFlag, true, `${path}: ${name}`);
    }
  }
});
