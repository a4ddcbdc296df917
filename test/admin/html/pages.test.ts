import { readdirSync } from 'node:fs';
import fc from 'fast-check';
import t from 'tap';
import { EscapedPieces, escapeBytes } from '../../../src/admin/html/escaped-pieces.js';
import { escapeHtml } from '../../../src/admin/html/page.js';
import { ClusterStats } from '../../../src/stats/layouts/cluster.js';
import { httpRequest } from '../../e2e/harness/http-client.js';
import { startAdmin } from '../fixture.js';

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
  "form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

t.test('pages allow only content of the server, and contain nothing inline', async (t) => {
  const { port } = await startAdmin(t);
  for (const path of ['/', '/stats?format=html', '/stats?format=active-html']) {
    const { headers, body } = await httpRequest(port, path);
    t.match(headers, { 'content-type': 'text/html; charset=UTF-8', 'content-security-policy': POLICY }, path);
    t.notMatch(
      body,
      /<style|<script(?!(?: type='module')? src='web\/(?:[a-z]+\/)?[a-z]+\.js'><)|\son[a-z]+=|\sstyle=/,
      path,
    );
    t.notMatch(body, /(?:href|src|action)='(?:\/|[a-z]+:)/, `${path}: all links are relative`);
  }
});

t.test('every file of the pages is served, subject to allow_paths, and listed nowhere', async (t) => {
  const entries = readdirSync(new URL('../../../web/', import.meta.url), { recursive: true, encoding: 'utf8' });
  const files = entries.filter((entry) => /\.(css|js)$/.test(entry));
  t.ok(files.length > 10);
  const { port } = await startAdmin(t);
  for (const file of files) {
    const type = file.endsWith('.css') ? 'text/css' : 'text/javascript';
    const answer = await httpRequest(port, `/web/${file}`);
    t.match(answer, { status: 200, headers: { 'content-type': `${type}; charset=UTF-8` } }, file);
  }
  t.equal((await httpRequest(port, '/web/tsconfig.json')).status, 404);
  t.notMatch((await httpRequest(port, '/help')).body, '/web/');
  t.notMatch((await httpRequest(port, '/')).body, /<td>[^/]*web\//);
  const { port: closed } = await startAdmin(t, { allowPaths: [{ prefix: '/stats' }] });
  t.equal((await httpRequest(closed, '/stats?format=html')).status, 200);
  t.equal((await httpRequest(closed, '/web/admin.css')).status, 403);
});

t.test('a page with many stats contains every line of the text, and /ready is answered meanwhile', async (t) => {
  const { services, port } = await startAdmin(t);
  for (let i = 0; i < 2000; i++) services.stats.addScope(`cluster.<${i}>.`, ClusterStats);
  let isDone = false;
  const page = httpRequest(port, '/stats?format=html', { deadlineMs: 60_000 }).then((answer) => {
    isDone = true;
    return answer.body;
  });
  t.equal((await httpRequest(port, '/ready')).status, 200);
  t.notOk(isDone);
  const { body: text } = await httpRequest(port, '/stats', { deadlineMs: 60_000 });
  t.ok((await page).endsWith(`<pre id='stats-text'>${escapeHtml(text)}</pre>\n</main>\n</body>\n</html>\n`));
});

t.test(
  'pieces of a page are produced one at a time, and their source is notified when no more are needed',
  async (t) => {
    let produced = 0;
    let returned = 0;
    const source = {
      next: () => ({ done: false, value: Buffer.from(`<${produced++}>`) }) as const,
      return: () => ({ done: true, value: returned++ }) as const,
      [Symbol.iterator]: () => source,
    };
    const pieces = new EscapedPieces('head', source, 'tail');
    t.equal(String((await pieces.next()).value), 'head');
    t.equal(produced, 0);
    t.equal(String((await pieces.next()).value), '&lt;0&gt;');
    t.equal(produced, 1);
    await pieces.return!();
    t.equal(returned, 1);
    t.same(await pieces.next(), { done: true, value: undefined });
    // As for HEAD, which needs none.
    await new EscapedPieces('head', source, 'tail').return!();
    t.equal(returned, 2);
  },
);

t.test('a waiting source is notified immediately', async (t) => {
  let isNotified = false;
  const source = {
    next: () => new Promise<IteratorResult<Uint8Array>>(() => {}),
    return: async () => ({ done: (isNotified = true), value: undefined }) as const,
    [Symbol.asyncIterator]: () => source,
  };
  const pieces = new EscapedPieces('head', source, 'tail');
  await pieces.next();
  void pieces.next();
  await pieces.return!();
  t.ok(isNotified);
});

t.test('bytes are escaped as texts are', async (t) => {
  const characters = fc.constantFrom('a', '<', '>', '&', '"', "'", 'ä', '€', '😀', '&lt;');
  const property = fc.property(fc.array(characters), (texts) => {
    const text = texts.join('');
    return Buffer.from(escapeHtml(text)).equals(escapeBytes(Buffer.from(text)));
  });
  t.doesNotThrow(() => fc.assert(property));
  t.equal(String(escapeBytes(Buffer.from(`<a href="&'">ä`))), '&lt;a href=&quot;&amp;&#39;&quot;&gt;ä');
});
