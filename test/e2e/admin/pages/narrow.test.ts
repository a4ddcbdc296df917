// The admin pages fit on a phone: each of them fits 360 pixels, even with long generated names.

import type { Page } from 'playwright-core';
import t from 'tap';
import {
  bootstrap,
  findPeer,
  httpListener,
  httpRequest,
  loopback,
  openPage,
  routeAllTo,
  startBaton,
  startBrowser,
  startEchoUpstream,
  staticCluster,
  waitFor,
} from '../../harness/index.js';

const chromium = findPeer('chromium');
if (chromium.path === undefined) {
  t.plan(0, chromium.skip);
  process.exit();
}
const LONG = 'outbound_.8443_._v2_._recommendations.production-europe-west.svc.cluster.local'.replaceAll('.', '_');
const upstream = await startEchoUpstream(t);
const baton = await startBaton(t, {
  config: bootstrap({
    listeners: ['web', LONG].map((name) => httpListener(name, 0, { route_config: routeAllTo(LONG) })),
    clusters: [staticCluster('api', [upstream.port]), staticCluster(LONG, [upstream.port])],
    extra: {
      admin: { address: loopback(0) },
      layered_runtime: { layers: [{ name: 'admin', admin_layer: {} }] },
      stats_flush_interval: '0.5s',
    },
  }),
  args: ['-l', 'critical', '--service-node', LONG],
});
await httpRequest(await baton.listenerPort('web'), '/');
const url = `http://127.0.0.1:${baton.adminPort}/`;
const browser = await startBrowser(t, chromium.path);

/** Pages, each with the steps before it is measured. */
const PAGES: readonly [what: string, path: string, prepare: (page: Page) => Promise<unknown>][] = [
  ['the home page', '', (page) => page.locator('#listeners-section tbody tr').first().waitFor()],
  ['the hosts of a cluster', '', (page) => page.getByRole('button', { name: LONG, exact: true }).click()],
  [
    'an answer',
    '',
    async (page) => {
      await page.getByPlaceholder('key').fill(LONG);
      await page.getByPlaceholder('value').fill(LONG);
      await page.getByRole('button', { name: 'runtime_modify', exact: true }).click();
      await page.getByText('runtime_modify OK').waitFor();
    },
  ],
  [
    'a question',
    '',
    async (page) => {
      await page.getByRole('button', { name: 'quitquitquit', exact: true }).click();
      await page.getByRole('dialog').waitFor();
    },
  ],
  ['stats', 'stats?format=html', (page) => page.locator('tbody th').first().waitFor()],
  ['times', 'stats?format=html&usedonly&filter=time', (page) => page.locator('.histogram').first().waitFor()],
  ['active stats', 'stats?format=active-html&interval=1', (page) => page.locator('tbody th').first().waitFor()],
];

for (const [what, path, prepare] of PAGES) {
  t.test(`${what} fit 360 pixels`, async (t) => {
    const { page, problems } = await openPage(t, browser, url + path, { viewport: { width: 360, height: 740 } });
    await prepare(page);
    t.same(await page.evaluate(TOO_WIDE), []);
    t.same(problems, []);
  });
}

t.test('without JavaScript the pages fit too', async (t) => {
  for (const path of ['', 'stats?format=html', 'stats?format=active-html']) {
    const { page } = await openPage(t, browser, url + path, {
      viewport: { width: 360, height: 740 },
      javaScriptEnabled: false,
    });
    // A screenshot of the whole page is as wide as its contents.
    const picture = await page.screenshot({ fullPage: true });
    t.equal(picture.readUInt32BE(16), 360, path);
  }
});

t.test('sections stacked on narrow screens are side by side on wide ones', async (t) => {
  const { page } = await openPage(t, browser, url, { viewport: { width: 1100, height: 740 } });
  const boxes = await Promise.all(
    [0, 1].map((index) => page.locator('.home-table .endpoint').first().locator('td').nth(index).boundingBox()),
  );
  t.equal(boxes[0]!.y, boxes[1]!.y);
  await waitFor(async () => ((await page.evaluate(TOO_WIDE)) as unknown[]).length === 0);
});

/** Elements that overflow the page, outside of boxes that scroll; the page's width if that is too large. */
const TOO_WIDE = `(() => {
  const { clientWidth, scrollWidth } = document.documentElement;
  const wide = [...document.querySelectorAll('body *')].filter((element) => {
    const { right, width } = element.getBoundingClientRect();
    return width > 0 && right > clientWidth + 1 && element.closest('.scroll') === null;
  });
  return [...wide.map(({ tagName, className, id }) => tagName + '.' + className + '#' + id), ...(scrollWidth > clientWidth ? [scrollWidth] : [])];
})()`;
