// Through the CORS filter, pages in a browser read what policies allow, and send nothing that they do not allow.

import t from 'tap';
import { findPeer, openPage, startBrowser, startUpstream, staticCluster } from '../../harness/index.js';
import { managerOf, routeTo, startProxy } from '../proxy.js';
import { allowing, CORS_CHAIN, corsPolicy } from './cors.js';

const chromium = findPeer('chromium');
if (chromium.path === undefined) {
  t.plan(0, chromium.skip);
  process.exit();
}

const pages = await startUpstream(t, (_request, answer) => {
  answer.setHeader('content-type', 'text/html');
  answer.end('<!doctype html><link rel="icon" href="data:,">');
});
const PAGE = `http://127.0.0.1:${pages.port}`;
/** Requests that reached the host. */
const seen: string[] = [];
const upstream = await startUpstream(t, (request, answer) => {
  seen.push(`${request.method} ${request.url} ${request.headers['x-token']} ${request.headers.cookie}`);
  answer.setHeader('set-cookie', 'known=yes');
  answer.setHeader('x-shown', '1');
  answer.setHeader('x-hidden', '1');
  answer.end('from the host');
});
const open = { ...allowing(PAGE), expose_headers: 'x-shown', forward_not_matching_preflights: false };
const { port } = await startProxy(t, {
  listeners: {
    main: managerOf(
      [
        routeTo(
          { prefix: '/open' },
          'host',
          {},
          corsPolicy({ ...open, allow_methods: 'PUT', allow_headers: 'x-token' }),
        ),
        routeTo({ prefix: '/star' }, 'host', {
          cors: { ...open, allow_methods: '*', allow_headers: '*', allow_credentials: true, ...allowing('*') },
        }),
        routeTo({ prefix: '/closed' }, 'host', {}, corsPolicy({ ...open, ...allowing('http://127.0.0.1:1') })),
      ],
      CORS_CHAIN,
    ),
  },
  clusters: [staticCluster('host', upstream.port)],
});
const { page } = await openPage(t, await startBrowser(t, chromium.path), `${PAGE}/`);
t.beforeEach(() => void seen.splice(0));

/** Returns what a script of the page gets; 'refused' where the browser blocks it. */
function fetched(path: string, method: string, headers: Record<string, string>, credentials: string): Promise<unknown> {
  const options = JSON.stringify({ method, headers, credentials });
  return page.evaluate(`fetch('http://127.0.0.1:${port}${path}', ${options}).then(
    async (answer) => [answer.status, await answer.text(), answer.headers.get('x-shown'), answer.headers.get('x-hidden')],
    () => 'refused')`);
}

const TOKEN = { 'x-token': 'a' };
const READ = [200, 'from the host', '1', null];

t.test('a page reads and sends what its policy allows', async (t) => {
  t.same(await fetched('/open', 'GET', {}, 'omit'), READ);
  t.same(await fetched('/open', 'PUT', TOKEN, 'omit'), READ);
  t.same(seen, ['GET /open undefined undefined', 'PUT /open a undefined'], 'preflights do not reach hosts');
});

t.test('a wildcard policy allows everything, with credentials too', async (t) => {
  t.same(await fetched('/star', 'PUT', TOKEN, 'include'), READ);
  t.same(await fetched('/star', 'DELETE', { ...TOKEN, 'x-other': 'b' }, 'include'), READ);
  t.same(seen, ['PUT /star a undefined', 'DELETE /star a known=yes']);
});

t.test('what the policy does not allow does not reach the host, or not the page', async (t) => {
  t.equal(await fetched('/open', 'DELETE', {}, 'omit'), 'refused');
  t.equal(await fetched('/open', 'PUT', { 'x-other': 'b' }, 'omit'), 'refused');
  t.equal(await fetched('/open', 'PUT', TOKEN, 'include'), 'refused', 'credentials');
  t.equal(await fetched('/closed', 'PUT', TOKEN, 'omit'), 'refused');
  t.same(seen, []);
  t.equal(await fetched('/closed', 'GET', {}, 'omit'), 'refused');
  t.same(seen, ['GET /closed undefined undefined'], 'a simple request needs no preflight: its response is withheld');
});
