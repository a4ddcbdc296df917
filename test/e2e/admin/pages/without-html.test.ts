// A build without the admin pages: it says so in their place, contains none of their files, and all else works.

import t from 'tap';
import { bootstrap, startBaton } from '../../harness/index.js';
import { copyTree } from '../../harness/tree.js';

const DISABLED = 'output was disabled by building with --define=admin_html=disabled';

t.test('npm run build -- --define=admin_html=disabled', async (t) => {
  const tree = copyTree(t);
  await tree.build('--define=admin_html=disabled');

  t.notOk(tree.has('dist/web'));
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

  await t.rejects(tree.build('--define=admin_htm=disabled'), {
    message: /unknown argument '--define=admin_htm=disabled'/,
  });
});
