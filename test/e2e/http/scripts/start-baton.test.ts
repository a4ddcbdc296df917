// startBaton() of baton/testing: a Baton with filters, for tests of their own.

import { join } from 'node:path';
import t from 'tap';
import { startBaton } from '../../../../src/testing/index.js';
import { tempDir } from '../../harness/environment.js';
import { writeScript } from './script-proxy.js';

t.test('it serves with the filters, and stops with the test', async (t) => {
  const directory = tempDir(t);
  writeScript(
    directory,
    'mark.ts',
    `import { defineHttpFilter } from 'baton';
    export default defineHttpFilter<{ readonly word: string }>({
      async onRequest(request, ctx) {
        ctx.stats.count('seen');
        request.headers.set('x-word', ctx.config.word + (await ctx.fetch('words', '/')).text() + ctx.runtime.number('own.n', 0));
      },
    });`,
  );
  const ends: (() => Promise<void>)[] = [];
  const baton = await startBaton(
    {
      filters: [{ filename: join(directory, 'mark.ts'), config: { word: 'a' } }],
      clusters: { words: (_request, response) => void response.end('b') },
      runtime: { own: { n: 3 } },
    },
    { after: (end) => ends.push(end) },
  );
  const answer = (await (await baton.fetch('/path', { method: 'POST', body: 'text' })).json()) as Record<
    string,
    unknown
  >;
  t.match(answer, { method: 'POST', url: '/path', body: 'text', headers: { 'x-word': 'ab3' } });
  await baton.waitFor(async () => (await baton.stats())['http.test.script.mark.seen'] === 1);
  t.equal(ends.length, 1);
  await ends[0]!();
  await t.rejects(baton.fetch('/'));
});

t.test('it rejects with the log of a Baton that does not start', async (t) => {
  await t.rejects(startBaton({ filters: ['/nowhere/absent.ts'] }), { message: /absent\.ts/ });
});
