// The build does what has to be done and no more, whatever has changed since the last one, and wherever the checkout is.

import { appendFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import { bootstrap, startBaton } from './e2e/harness/index.js';
import { copyTree } from './e2e/harness/tree.js';

t.test('npm start and npm run build', async (t) => {
  const tree = copyTree(t);
  const copied = tree.written();
  await tree.build('--force');
  const first = tree.written();
  t.ok(first['baton/main.js']! > copied['baton/main.js']!, 'all is built with --force');

  await t.test('nothing is built when nothing has changed, and the program runs', async (t) => {
    const { stdout, stderr } = await tree.npm('start', '--', '--mode', 'validate', '-c', 'examples/quickstart.yaml');
    t.match(stdout + stderr, /OK/);
    t.strictSame(tree.written(), first);
  });

  await t.test('a file is compiled when it is new or other, and its output goes with it', async (t) => {
    writeFileSync(tree.path('test/new.test.ts'), 'export const number = 1;\n');
    await tree.build();
    t.match(tree.read('dist/test/new.test.js'), 'number = 1');
    const times = statSync(tree.path('test/new.test.ts'));
    writeFileSync(tree.path('test/new.test.ts'), 'export const number = 2;\n');
    utimesSync(tree.path('test/new.test.ts'), times.atime, times.mtime);
    await tree.build();
    t.match(tree.read('dist/test/new.test.js'), 'number = 2', 'though its date and size are the same');
    rmSync(tree.path('test/new.test.ts'));
    await tree.build();
    t.notOk(tree.has('dist/test/new.test.js'));
    t.notOk(tree.has('dist/test/new.test.js.map'));
    t.equal(tree.written()['baton/main.js'], first['baton/main.js'], 'what does not depend on it stays');
  });

  await t.test('outputs that are gone or other are made again', async (t) => {
    const bundle = tree.read('dist/baton/main.js');
    rmSync(tree.path('dist/src/main.js'));
    rmSync(tree.path('dist/schema.json'));
    appendFileSync(tree.path('dist/baton/main.js'), '// damaged\n');
    await tree.build();
    t.ok(tree.has('dist/src/main.js'));
    t.ok(tree.has('dist/schema.json'));
    t.equal(tree.read('dist/baton/main.js'), bundle);
  });

  await t.test('all is built when packages have changed', async (t) => {
    const before = tree.written()['baton/main.js']!;
    appendFileSync(tree.path('node_modules/.package-lock.json'), '\n');
    await tree.build();
    t.ok(tree.written()['baton/main.js']! > before);
  });

  await t.test('a build that failed is done again', async (t) => {
    const source = tree.read('src/main.ts');
    appendFileSync(tree.path('src/main.ts'), 'export const wrong: number = "text";\n');
    for (const _ of [1, 2]) await t.rejects(tree.build(), { message: /Command failed/ });
    writeFileSync(tree.path('src/main.ts'), source);
    await tree.build();
  });

  await t.test('pages come and go with --define', async (t) => {
    await tree.build('--define=admin_html=disabled');
    t.notOk(tree.has('dist/web'));
    t.match(tree.read('dist/src/common/package/generated/build.js'), 'ADMIN_HTML = false');
    await t.test('a program without pages says so in their place', (t) => checkWithoutPages(t, tree));
    await tree.build();
    t.ok(tree.has('dist/web/admin.css'));
    t.match(tree.read('dist/src/common/package/generated/build.js'), 'ADMIN_HTML = true');
    await t.rejects(tree.build('--define=admin_htm=disabled'), {
      message: /unknown argument '--define=admin_htm=disabled'/,
    });
  });
});

/** All else works in such a program. */
async function checkWithoutPages(t: Test, tree: ReturnType<typeof copyTree>): Promise<void> {
  const DISABLED = 'output was disabled by building with --define=admin_html=disabled';
  const baton = await startBaton(t, {
    config: bootstrap({ listeners: [], clusters: [] }),
    args: ['-l', 'critical'],
    program: tree.path('dist/baton/main.js'),
  });
  t.match(await baton.admin('/'), {
    status: 200,
    body: `HTML ${DISABLED}`,
    headers: { 'content-type': /^text\/plain/ },
  });
  t.match(await baton.admin('/stats?format=html'), { status: 400, body: new RegExp(`^HTML ${DISABLED}`) });
  t.match(await baton.admin('/stats?format=active-html'), {
    status: 400,
    body: new RegExp(`^Active HTML ${DISABLED}`),
  });
  t.equal((await baton.admin('/web/admin.css')).status, 404);
  t.match(await baton.admin('/stats?filter=^server.live'), { status: 200, body: 'server.live: 1\n' });
  await baton.stop();
}
