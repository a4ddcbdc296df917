// The stats pages in a browser: plain lines without scripts; with them a table to sort and filter, histograms, and the most
// active stats.

import t from 'tap';
import {
  bootstrap,
  findPeer,
  httpListener,
  httpRequest,
  openPage,
  routeAllTo,
  startBaton,
  startBrowser,
  startEchoUpstream,
  staticCluster,
  waitFor,
} from '../../harness/index.js';
import { sendTraffic } from './traffic.js';

const chromium = findPeer('chromium');
if (chromium.path === undefined) {
  t.plan(0, chromium.skip);
  process.exit();
}
/** Markup that a page must show as text. */
const HOSTILE = `<img src=x onerror="alert('&amp;')">`;
const REQUESTS = 40;
const upstream = await startEchoUpstream(t);
const baton = await startBaton(t, {
  config: bootstrap({
    listeners: [
      httpListener('busy', 0, { route_config: routeAllTo('busy') }),
      httpListener('done', 0, { route_config: routeAllTo('done') }),
    ],
    clusters: [
      staticCluster('busy', upstream.port),
      staticCluster('done', upstream.port),
      staticCluster(HOSTILE, upstream.port),
    ],
    extra: { stats_flush_interval: '0.2s' },
  }),
  args: ['-l', 'critical'],
});
const url = `http://127.0.0.1:${baton.adminPort}/stats?format=`;
const { origin } = new URL(url);
const donePort = await baton.listenerPort('done');
for (let i = 0; i < REQUESTS; i++) await httpRequest(donePort);
sendTraffic(t, await baton.listenerPort('busy'));
const browser = await startBrowser(t, chromium.path);

t.test('without JavaScript the page shows the submitted form, and lines of text', async (t) => {
  const query = 'html&usedonly&type=Counters&filter=done.upstream_rq_t';
  const { page, problems } = await openPage(t, browser, `${url}${query}`, { javaScriptEnabled: false });
  t.equal(await page.inputValue('[name=filter]'), 'done.upstream_rq_t');
  t.equal(await page.isChecked('[name=usedonly]'), true);
  t.equal(await page.isChecked('[name=invert_filter]'), false);
  t.equal(await page.inputValue('[name=type]'), 'Counters');
  t.equal(await page.inputValue('[name=format]'), 'html');
  t.equal(await page.inputValue('[name=histogram_buckets]'), 'summary');
  t.equal(await page.textContent('#stats-text'), `cluster.done.upstream_rq_total: ${REQUESTS}\n`);
  await page.uncheck('[name=usedonly]');
  await page.fill('[name=filter]', 'img.*membership_change');
  await page.getByRole('button', { name: 'Show' }).click();
  t.equal(await page.textContent('#stats-text'), `cluster.${HOSTILE}.membership_change: 1\n`);
  t.same(problems, []);
});

t.test('the table can be sorted and filtered with the keyboard', async (t) => {
  const { page, problems, origins } = await openPage(t, browser, `${url}html&filter=^cluster.done|img.*membership`);
  const names = () => page.locator('.data-table th[scope=row]').allTextContents();
  const unsorted = await names();
  t.ok(unsorted.length > 50);
  t.equal(await page.isVisible('#stats-text'), false);
  const value = page.getByRole('columnheader', { name: 'Value' });
  await value.getByRole('button').focus();
  await page.keyboard.press('Enter');
  t.equal(await value.getAttribute('aria-sort'), 'descending');
  const values = (await page.locator('.data-table td.number').allTextContents()).map((text) =>
    Number(text.replaceAll(',', '')),
  );
  t.same(
    values,
    [...values].sort((a, b) => b - a),
  );
  t.ok(values[0]! > values.at(-1)!);
  await page.keyboard.press('Enter');
  t.equal(await value.getAttribute('aria-sort'), 'ascending');
  await page.getByRole('columnheader', { name: 'Name' }).getByRole('button').press('Enter');
  t.same(await names(), [...unsorted].sort());

  await page.getByLabel('Find in the list').pressSequentially('RQ_TOTAL done');
  t.same(await names(), ['cluster.done.upstream_rq_total']);
  await page.getByLabel('Find in the list').fill('onerror membership_change');
  t.same(await names(), [`cluster.${HOSTILE}.membership_change`]);
  t.same(problems, []);
  t.same([...origins], [origin]);
});

t.test('histograms are drawn from all their samples', async (t) => {
  const { page, problems } = await openPage(t, browser, `${url}html&filter=^http.done.*rq_time`);
  await page.locator('.histogram').waitFor();
  const titles = await page.locator('.histogram rect title').allTextContents();
  const counts = titles.map((title) => Number(/: (\d+)$/.exec(title)?.[1]));
  t.equal(
    counts.reduce((sum, count) => sum + count, 0),
    REQUESTS,
  );
  t.match(await page.locator('.histogram').getAttribute('aria-label'), `${REQUESTS} samples`);
  t.match(await page.locator('figcaption').textContent(), /^40 samples · median [\d.]+ · 99 % [\d.]+ · most [\d.]+$/);
  for (const mode of ['detailed', 'cumulative', 'disjoint']) {
    await page.selectOption('[name=histogram_buckets]', mode);
    await page.waitForURL(`**histogram_buckets=${mode}**`);
    await page.locator('.histogram').waitFor();
    t.match(
      await page.locator('.lines').textContent(),
      mode === 'detailed' ? /^totals=.*\nintervals=.*\nsummary=P0\(/ : /^B0\.5\(/,
    );
  }
  t.same(problems, []);
});

t.test('a change in the form takes effect at once, and the address reflects it', async (t) => {
  const { page } = await openPage(t, browser, `${url}html`);
  await page.locator('.data-table tbody tr').first().waitFor();
  t.match(await page.locator('.count').textContent(), /^[\d,]+ in all, the first 200 are shown$/);
  await page.getByRole('button', { name: 'Show more' }).click();
  t.equal((await page.locator('.data-table tbody tr').count()) > 200, true);
  await page.fill('[name=filter]', '^server.live');
  await page.keyboard.press('Enter');
  await page.waitForURL('**filter=%5Eserver.live**');
  const row = page.locator('.data-table tbody tr');
  t.same(await row.allTextContents(), ['server.live1']);
  await page.reload();
  t.same(await row.allTextContents(), ['server.live1']);
  await page.fill('[name=filter]', '(');
  await page.keyboard.press('Tab');
  await page.getByText('stats: 400 Invalid re2 regex: missing ): (').waitFor();
  await page.fill('[name=filter]', '');
  await page.selectOption('[name=format]', 'json');
  await page.waitForURL('**format=json**');
  t.ok(JSON.parse((await page.textContent('body'))!).stats.length > 50);
});

t.test('the active page shows the stats that change most often, at the selected interval', async (t) => {
  const { page, problems } = await openPage(t, browser, `${url}active-html&interval=1&count=5&filter=upstream_rq`);
  const row = page.locator('.data-table tbody tr');
  await waitFor(async () => /^[3-9]$/.test((await row.first().locator('td').last().textContent())!), {
    what: 'changes',
  });
  t.equal(await row.count(), 5);
  for (const text of await row.allTextContents()) t.match(text, /^cluster\.busy\./);
  t.match(await row.first().locator('td').nth(1).textContent(), /^[\d.,]+\/s$/);
  t.same(await row.filter({ hasText: 'cluster.done' }).count(), 0);
  await page.fill('[name=count]', '2');
  await page.fill('[name=filter]', 'done.upstream_rq');
  await page.keyboard.press('Tab');
  await row.filter({ hasText: 'cluster.done' }).first().waitFor();
  t.equal(await row.count(), 2);
  t.same(problems, []);
});

t.test(
  'the active page begins with 50 stats every 5 seconds, and without JavaScript links to the plain page',
  async (t) => {
    const { page } = await openPage(t, browser, `${url}active-html`, { javaScriptEnabled: false });
    t.equal(await page.inputValue('[name=count]'), '50');
    t.equal(await page.inputValue('[name=interval]'), '5');
    t.equal(await page.locator('[name=usedonly]').count(), 0);
    await page.getByRole('link', { name: 'plain page' }).click();
    // The text arrives in pieces.
    const total = `cluster.done.upstream_rq_total: ${REQUESTS}\n`;
    await waitFor(async () => (await page.textContent('#stats-text'))!.includes(total), { what: total });
    for (const [bad, text] of [
      ['count=0', 'count must be a whole number from 1 to 1000\n'],
      ['interval=1.5', 'interval must be a whole number from 1 to 3600\n'],
      ['type=Odd', 'invalid &type= param'],
    ]) {
      t.match(await baton.admin(`/stats?format=active-html&${bad}`), { status: 400, body: text });
    }
  },
);
