// The home page in a browser shows clusters whose hosts fail, even without health checks.

import t from 'tap';
import {
  bootstrap,
  findPeer,
  freePort,
  httpListener,
  httpRequest,
  openPage,
  routeAllTo,
  startBaton,
  startBrowser,
  startUpstream,
  staticCluster,
  waitFor,
} from '../../harness/index.js';
import { sendTraffic } from './traffic.js';

const chromium = findPeer('chromium');
if (chromium.path === undefined) {
  t.plan(0, chromium.skip);
  process.exit();
}
const browser = await startBrowser(t, chromium.path);

t.test('clusters whose hosts fail every request are not shown as healthy', async (t) => {
  let status = 500;
  const good = await startUpstream(t, (_request, response) => response.end());
  const broken = await startUpstream(t, (_request, response) => response.writeHead(status).end());
  const clusters = [
    staticCluster('good', [good.port]),
    staticCluster('broken', [broken.port]),
    staticCluster('refused', [await freePort()]),
    staticCluster('half', [good.port, broken.port]),
    staticCluster('once', [broken.port]),
    staticCluster('idle', [good.port]),
  ];
  const asked = ['good', 'broken', 'refused', 'half'];
  const baton = await startBaton(t, {
    config: bootstrap({
      listeners: [...asked, 'once'].map((name) => httpListener(name, 0, { route_config: routeAllTo(name) })),
      clusters,
    }),
    args: ['-l', 'critical'],
  });
  await httpRequest(await baton.listenerPort('once'), '/');
  for (const name of asked) sendTraffic(t, await baton.listenerPort(name));
  await baton.waitForStat('cluster.once.upstream_rq_500', 1);
  const { page, problems } = await openPage(t, browser, `http://127.0.0.1:${baton.adminPort}/`);
  const row = (name: string) =>
    page.locator('#clusters-section tbody tr').filter({ has: page.getByText(name, { exact: true }) });
  const cells = async (name: string) => (await row(name).locator('td').allTextContents()).map((text) => text.trim());
  const shows = (name: string, hosts: string, success: RegExp) =>
    waitFor(
      async () => {
        const found = await cells(name);
        return found[0] === hosts && success.test(found[3]!) ? found : undefined;
      },
      { what: `${name}: ${hosts}, ${success}` },
    );
  await shows('good', '1 of 1', /^100 %$/);
  await shows('broken', '0 of 1, 1 failing', /^0 %$/);
  await shows('refused', '0 of 1, 1 failing', /^0 %$/);
  await shows('half', '1 of 2, 1 failing', /^\d\d(\.\d)? %$/);
  await shows('once', '0 of 1, 1 failing', /^–$/);
  await shows('idle', '1 of 1', /^–$/);
  for (const name of ['broken', 'refused', 'once'])
    t.match(await row(name).locator('td').first().getAttribute('class'), /\bbad\b/, name);
  t.match(await row('half').locator('td').first().getAttribute('class'), /\bwarn\b/);
  t.notMatch(await row('good').locator('td').first().getAttribute('class'), /\b(bad|warn)\b/);
  await page.getByRole('button', { name: 'broken', exact: true }).click();
  const host = page.locator('.hosts tbody tr');
  await waitFor(async () => /failing/.test((await host.textContent())!), { what: 'the health of its host' });

  status = 200;
  await shows('broken', '1 of 1', /^\d+(\.\d)? %$/);
  t.same(problems, []);
  await baton.stop();
});
