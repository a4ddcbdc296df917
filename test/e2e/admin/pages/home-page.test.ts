// The home page in a browser: links and forms without scripts, live figures with them, under any path, and no third-party
// content.

import { join } from 'node:path';
import type { Page } from 'playwright-core';
import t from 'tap';
import {
  bootstrap,
  connectRaw,
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
  tempDir,
  waitFor,
} from '../../harness/index.js';
import { startSubPathProxy } from './sub-path-proxy.js';
import { sendTraffic } from './traffic.js';

const chromium = findPeer('chromium');
if (chromium.path === undefined) {
  t.plan(0, chromium.skip);
  process.exit();
}
const upstream = await startEchoUpstream(t);
const baton = await startBaton(t, {
  config: bootstrap({
    listeners: [
      httpListener('main', 0, { route_config: routeAllTo('api') }),
      { ...httpListener('named', 0, { route_config: routeAllTo('api') }), stat_prefix: 'front:door' },
    ],
    clusters: [staticCluster('api', [upstream.port]), staticCluster('idle', [upstream.port])],
    extra: {
      admin: { address: loopback(0), profile_path: join(tempDir(t), 'baton.prof') },
      layered_runtime: { layers: [{ name: 'admin', admin_layer: {} }] },
      stats_flush_interval: '0.5s',
    },
  }),
  args: ['-l', 'critical', '--service-node', 'edge-1'],
});
const url = `http://127.0.0.1:${baton.adminPort}/`;
const { origin } = new URL(url);
const port = await baton.listenerPort('main');
sendTraffic(t, port);
const browser = await startBrowser(t, chromium.path);

t.test('without JavaScript every endpoint is a working link or form', async (t) => {
  const { page, problems } = await openPage(t, browser, url, { javaScriptEnabled: false });
  t.equal(await page.title(), 'Baton Admin');
  t.equal(await page.textContent('#server-state'), 'LIVE');
  t.equal(await page.textContent('#server-node'), 'edge-1');
  t.ok(await page.getByText('Without JavaScript').isVisible());
  const listed = [...(await baton.admin('/help')).body.matchAll(/^ {2}\/(\S+?)( \(POST\))?: /gm)];
  t.ok(listed.length > 8);
  const sent = (await page.evaluate(FORMS)) as [path: string, method: string, query: string][];
  const forms = new Map(sent.map(([path, method]) => [path, method]));
  for (const [, path, mutates] of listed) {
    if (mutates !== undefined) t.equal(forms.get(path!), 'post', path);
    else if (!forms.has(path!)) t.equal(await page.locator(`.home-table a[href='${path}']`).count(), 1, path);
    else t.equal(forms.get(path!), 'get', path);
  }
  for (const [path, method, query] of sent) {
    if (method === 'get') t.equal((await baton.admin(`/${path}?${query}`)).status, 200, `${path}?${query}`);
  }
  await page.fill("input[name='filter'][form='stats']", '^server\\.live$');
  await page.check("input[name='usedonly'][form='stats']");
  await page.selectOption("select[name='format'][form='stats']", 'text');
  await page.getByRole('button', { name: 'stats', exact: true }).click();
  t.match(page.url(), /\/stats\?.*filter=/);
  t.equal((await page.textContent('body'))?.trim(), 'server.live: 1');
  await page.goBack();
  await page.getByRole('button', { name: 'reopen_logs', exact: true }).click();
  t.equal((await page.textContent('body'))?.trim(), 'OK');
  t.same(problems, []);
});

t.test('figures follow the traffic, and all resources come from the server itself', async (t) => {
  const { page, problems, origins } = await openPage(t, browser, url);
  await expectFigures(page);
  const inAll = () => page.textContent('#gauge-requests + .remark');
  const before = await inAll();
  await waitFor(async () => (await inAll()) !== before, { what: 'further requests' });
  await waitFor(async () => (await page.getAttribute('.sparkline .line', 'points'))!.split(' ').length > 1);
  await page.locator('#gauges .histogram rect').first().waitFor({ state: 'attached' });

  const listeners = page.locator('#listeners-section tbody tr');
  const listener = (name: string) => listeners.filter({ hasText: name }).locator('td').allTextContents();
  // The traffic opens connections only briefly.
  const connected = await connectRaw(t, await baton.listenerPort('main'));
  await waitFor(async () => Number((await listener('main'))[1]) > 0, { what: 'connections of a listener' });
  connected.destroy();
  t.match((await listener('main'))[0], /^127\.0\.0\.1:\d+$/);
  const client = await connectRaw(t, await baton.listenerPort('named'));
  await waitFor(async () => (await listener('named'))[1] === '1', {
    what: 'connections of a listener with stat_prefix',
  });
  client.destroy();
  t.equal(await page.textContent('#drain-state'), '2 active; health checks pass.');

  const api = page.getByRole('button', { name: 'api', exact: true });
  await api.focus();
  await page.keyboard.press('Enter');
  t.equal(await api.getAttribute('aria-expanded'), 'true');
  const host = page.locator('.hosts tbody tr');
  t.match(await host.textContent(), new RegExp(`^127\\.0\\.0\\.1:${upstream.port}healthy`));
  await waitFor(async () => /^[1-9]/.test((await host.locator('td').nth(3).textContent())!), {
    what: "the host's rate",
  });
  t.ok(await page.evaluate("document.activeElement.textContent === 'api'"), 'updates leave the focus where it is');

  await page.getByLabel('Filter clusters').fill('IDL');
  t.same(await page.locator('#clusters-section th[scope=row]').allTextContents(), ['idle']);
  t.same(problems, []);
  t.same([...origins], [origin]);
});

t.test('requests that are also counted by class of client are shown once', async (t) => {
  const quiet = await startBaton(t, {
    config: bootstrap({
      listeners: [httpListener('main', 0, { route_config: routeAllTo('api') })],
      clusters: [staticCluster('api', [upstream.port])],
    }),
  });
  const headers = { 'user-agent': 'iOS' };
  for (let i = 0; i < 3; i++) await httpRequest(await quiet.listenerPort('main'), '/', { headers });
  t.equal(await quiet.stat('http.main.user_agent.ios.downstream_rq_total'), 3);
  const { page } = await openPage(t, browser, `http://127.0.0.1:${quiet.adminPort}/`);
  const inAll = () => page.textContent('#gauge-requests + .remark');
  await waitFor(async () => (await inAll()) !== '', { what: 'the figure' });
  t.equal(await inAll(), '3 in all');
});

t.test('before the first flush no times are shown, which does not mean that there were no requests', async (t) => {
  const quiet = await startBaton(t, {
    config: bootstrap({
      listeners: [httpListener('main', 0, { route_config: routeAllTo('api') })],
      clusters: [staticCluster('api', [upstream.port])],
      extra: { stats_flush_interval: '200s' },
    }),
  });
  await httpRequest(await quiet.listenerPort('main'), '/');
  const { page } = await openPage(t, browser, `http://127.0.0.1:${quiet.adminPort}/`);
  const remark = (id: string) => page.textContent(`#gauge-${id} + .remark`);
  await waitFor(async () => (await remark('requests')) === '1 in all', { what: 'the request' });
  t.equal(await remark('times'), 'known after the next flush');
});

t.test('buttons send requests in the background, with a confirmation where traffic is affected', async (t) => {
  const { page, problems } = await openPage(t, browser, url);
  const sent = page.waitForRequest((request) => request.method() === 'POST');
  await page.getByRole('button', { name: 'reopen_logs', exact: true }).press('Enter');
  const headers = await (await sent).allHeaders();
  t.match(headers, { origin, 'sec-fetch-site': 'same-origin' });
  await page.getByText('reopen_logs OK').waitFor();

  await page.getByPlaceholder('key').fill('health.min & max');
  await page.getByPlaceholder('value').fill('12 + 3');
  await page.getByRole('button', { name: 'runtime_modify', exact: true }).click();
  await page.getByText('runtime_modify OK').waitFor();
  const { entries } = JSON.parse((await baton.admin('/runtime')).body);
  t.match(entries['health.min & max'], { final_value: '12 + 3' });

  await page.getByRole('button', { name: 'allocprofiler', exact: true }).click();
  await page.getByText('allocprofiler Starting').waitFor();
  await page.selectOption("select[name='enable'][form='allocprofiler']", 'n');
  await page.getByRole('button', { name: 'allocprofiler', exact: true }).click();
  await page.getByText(/^allocprofiler answered with [\d.,]+ K?i?B of binary data/).waitFor();

  await page.getByRole('button', { name: 'quitquitquit', exact: true }).press('Enter');
  await page.getByRole('dialog').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  t.equal((await baton.admin('/ready')).body, 'LIVE\n');

  await page.getByRole('button', { name: 'healthcheck/fail', exact: true }).click();
  await page.getByRole('button', { name: 'Go ahead' }).click();
  await page.getByText('healthcheck/fail OK').waitFor();
  await waitFor(async () => (await page.textContent('#server-state')) === 'DRAINING');
  await waitFor(async () => (await page.textContent('#drain-state'))!.endsWith('failed on purpose.'));
  await page.getByRole('button', { name: 'healthcheck/ok', exact: true }).click();
  await waitFor(async () => (await page.textContent('#server-state')) === 'LIVE');
  t.same(problems, []);
});

t.test('form input arrives as it was typed, spaces and plus signs included', async (t) => {
  const { page, problems } = await openPage(t, browser, url);
  await page.fill("input[name='filter'][form='stats']", '^server\\.live$| +\\+');
  await page.selectOption("select[name='format'][form='stats']", 'text');
  await page.getByRole('button', { name: 'stats', exact: true }).click();
  await page.waitForURL(/filter=/);
  t.equal(new URL(page.url()).searchParams.get('filter'), '^server\\.live$| +\\+');
  t.match(page.url(), '%20%2B%5C%2B');
  t.equal((await page.textContent('body'))?.trim(), 'server.live: 1');
  t.same(problems, []);
});

t.test('the page works under a path of a reverse proxy', async (t) => {
  const proxy = await startSubPathProxy(t, baton.adminPort);
  const { page, problems } = await openPage(t, browser, proxy.url);
  await expectFigures(page);
  await page.getByRole('button', { name: 'reopen_logs', exact: true }).click();
  await page.getByText('reopen_logs OK').waitFor();
  await page.getByRole('link', { name: 'Stats', exact: true }).click();
  await page.getByRole('rowheader', { name: 'cluster.api.upstream_rq_total', exact: true }).waitFor();
  await page.getByRole('link', { name: 'Home' }).click();
  t.equal(page.url(), proxy.url);
  t.same(proxy.strays, []);
  t.same(problems, []);
});

for (const colorScheme of ['light', 'dark'] as const) {
  t.test(`in ${colorScheme} colours texts have contrast, controls have labels, and the focus is visible`, async (t) => {
    const { page } = await openPage(t, browser, url, { colorScheme });
    await expectFigures(page);
    for (const selector of ['body', '.remark', '.home-table label', '.home-table a', '#server-state', 'nav a']) {
      const { ratio, isDark } = await contrast(page, selector);
      t.ok(ratio >= 4.5, `${selector}: ${ratio.toFixed(1)}`);
      t.equal(isDark, colorScheme === 'dark');
    }
    const unlabelled = await page.evaluate(
      "[...document.querySelectorAll('input, select')].filter(({ labels }) => labels.length === 0).length",
    );
    t.equal(unlabelled, 0);
    await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    t.match(await page.evaluate('getComputedStyle(document.activeElement).outline'), /solid 2px/);
  });
}

t.test('the page reports that the server does not answer any more', async (t) => {
  const { page } = await openPage(t, browser, url);
  await expectFigures(page);
  await page.getByRole('button', { name: 'quitquitquit', exact: true }).click();
  await page.getByRole('button', { name: 'Go ahead' }).click();
  await page.getByText('The server does not answer.').waitFor();
  t.same(await baton.exited, { code: 0, signal: null });
});

/** For the browser: path and method of each form, and the query that it sends when nothing is filled in. */
const FORMS = `[...document.querySelectorAll('.home-table form')].map((form) =>
  [form.getAttribute('action'), form.getAttribute('method'), String(new URLSearchParams(new FormData(form)))])`;

async function expectFigures(page: Page): Promise<void> {
  await waitFor(async () => /^[1-9][\d.,]*\/s$/.test((await page.textContent('#gauge-requests'))!), {
    what: 'a rate of requests',
  });
}

/** Contrast of a text with its background (WCAG 2.2, 1.4.3), and whether the background is dark. */
async function contrast(page: Page, selector: string): Promise<{ ratio: number; isDark: boolean }> {
  const [color, ground] = (await page.evaluate(`(${COLOURS})('${selector}')`)) as [string, string];
  const [a, b] = [luminance(color), luminance(ground)];
  return { ratio: (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), isDark: b < 0.2 };
}

/** For the browser: an element's colour, and that of its nearest ancestor with a background. */
const COLOURS = `(selector) => {
  const element = document.querySelector(selector);
  let behind = element;
  while (getComputedStyle(behind).backgroundColor === 'rgba(0, 0, 0, 0)') behind = behind.parentElement;
  return [getComputedStyle(element).color, getComputedStyle(behind).backgroundColor];
}`;

function luminance(color: string): number {
  const [red = 0, green = 0, blue = 0] = (color.match(/[\d.]+/g) ?? []).map((channel) => {
    const share = Number(channel) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
