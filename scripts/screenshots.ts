// Takes the screenshots of the admin pages in docs/images, with Chromium and a server with traffic.
//
//   npm run build && node dist/scripts/screenshots.js [directory]

import { mkdirSync } from 'node:fs';
import { Agent, createServer, get } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import {
  bootstrap,
  findPeer,
  httpListener,
  openPage,
  routeAllTo,
  startBaton,
  startBrowser,
  staticCluster,
  type Teardown,
  tcpListener,
} from '../test/e2e/harness/index.js';

interface Picture {
  readonly name: string;
  readonly path: string;
  readonly scheme: 'light' | 'dark';
  /** Puts the page into the state to show. */
  readonly prepare: (page: Page) => Promise<unknown>;
}

/** How long traffic runs before a screenshot, so that the charts have data. */
const WATCH_MS = 40_000;

const PICTURES: readonly Picture[] = [
  { name: 'admin-home-light', path: '', scheme: 'light', prepare: showHosts },
  { name: 'admin-home-dark', path: '', scheme: 'dark', prepare: showHosts },
  {
    name: 'admin-stats-light',
    path: 'stats?format=html&usedonly&filter=^cluster.api.upstream_rq_(total|2xx|5xx|time)|api.upstream_cx_(active|length)',
    scheme: 'light',
    prepare: showTimes,
  },
  { name: 'admin-active-dark', path: 'stats?format=active-html&count=15&interval=1', scheme: 'dark', prepare: watch },
];

const cleanUps: (() => unknown)[] = [];
const borrower: Teardown = { teardown: (action) => cleanUps.push(action) };
try {
  await takePictures(process.argv[2] ?? 'docs/images');
} finally {
  for (const action of cleanUps.reverse()) await action();
}

async function takePictures(directory: string): Promise<void> {
  const { path: chromium } = findPeer('chromium');
  if (chromium === undefined) throw new Error('the screenshots need chromium (Debian package chromium)');
  mkdirSync(directory, { recursive: true });
  const url = await startServer();
  const browser = await startBrowser(borrower, chromium);
  await Promise.all(PICTURES.map((picture) => takePicture(browser, url, picture, directory)));
}

async function takePicture(browser: Browser, url: string, picture: Picture, directory: string): Promise<void> {
  const { page } = await openPage(borrower, browser, url + picture.path, {
    colorScheme: picture.scheme,
    viewport: { width: 1100, height: 760 },
  });
  await picture.prepare(page);
  const file = join(directory, `${picture.name}.png`);
  await page.screenshot({ path: file });
  console.log(file);
}

async function watch(page: Page): Promise<void> {
  await page.waitForTimeout(WATCH_MS);
}

async function showHosts(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'api', exact: true }).click();
  await watch(page);
}

async function showTimes(page: Page): Promise<void> {
  await watch(page);
  await page.getByRole('button', { name: 'Show', exact: true }).click();
  await page.locator('.histogram').nth(1).waitFor();
}

/** Starts Baton with varying traffic. Returns the address of its admin interface. */
async function startServer(): Promise<string> {
  const api = await Promise.all([startHost(3), startHost(6), startHost(20)]);
  const images = await startHost(40);
  const baton = await startBaton(borrower, {
    config: bootstrap({
      listeners: [
        httpListener('public', 0, { route_config: routeAllTo('api') }),
        httpListener('images', 0, { route_config: routeAllTo('images') }),
        tcpListener('database', 0, { cluster: 'database' }),
      ],
      clusters: [staticCluster('api', api), staticCluster('images', images), staticCluster('database', [1])],
    }),
    args: ['-l', 'error', '--service-node', 'edge-1', '--service-cluster', 'edge', '--concurrency', '2'],
  });
  sendTraffic(await baton.listenerPort('public'), 160);
  sendTraffic(await baton.listenerPort('images'), 30);
  return `http://127.0.0.1:${baton.adminPort}/`;
}

/** Starts a server that answers after about `meanMs`, and sometimes fails. */
async function startHost(meanMs: number): Promise<number> {
  const server = createServer((_request, response) => {
    response.statusCode = Math.random() < 0.01 ? 503 : 200;
    setTimeout(() => response.end('answer'), -Math.log(1 - Math.random()) * meanMs);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanUps.push(
    () => server.closeAllConnections(),
    () => server.close(),
  );
  return (server.address() as AddressInfo).port;
}

/** Sends about `mean` requests a second, in waves. */
function sendTraffic(port: number, mean: number): void {
  const agent = new Agent({ keepAlive: true });
  let tick = 0;
  const timer = setInterval(() => {
    const wave = 0.6 + 0.4 * Math.sin(tick++ / 15);
    for (let i = 0; i < (mean * wave * (0.7 + 0.6 * Math.random())) / 10; i++) {
      get({ host: '127.0.0.1', port, path: '/', agent }, (response) => response.resume()).on('error', () => {});
    }
  }, 100);
  cleanUps.push(
    () => clearInterval(timer),
    () => agent.destroy(),
  );
}
