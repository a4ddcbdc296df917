// Local responses of routes: redirects and direct responses.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { besideEnvoy } from '../../harness/envoy.js';
import { type Config, rawExchange, tempDir } from '../../harness/index.js';
import { parseMessage } from '../message.js';
import { headerOption, managerOf, startProxy } from '../proxy.js';

/** The default of max_direct_response_body_size_bytes. */
const LARGE = 'x'.repeat(4096);
const OVERWRITE = 'OVERWRITE_IF_EXISTS_OR_ADD';

const directory = tempDir(t);
writeFileSync(join(directory, 'page.txt'), 'a page\n');

const proxy = await startProxy(t, {
  listeners: {
    redirects: managerOf(redirectRoutes()),
    edge: managerOf(redirectRoutes(), { use_remote_address: true }),
    behindEdge: managerOf(redirectRoutes(), { use_remote_address: true, xff_num_trusted_hops: 1 }),
    direct: managerOf(directRoutes(), { server_name: 'front' }),
  },
});

t.test('each field of a redirect shapes the location', async (t) => {
  const cases: [string, string, string, number?][] = [
    ['/host/a?b=c', 'here.test', 'http://there.test/host/a?b=c'],
    ['/host/a', 'here.test:8080', 'http://there.test/host/a'],
    ['/port/a', 'here.test', 'http://here.test:8443/port/a'],
    ['/port/a', 'here.test:80', 'http://here.test:8443/port/a'],
    ['/port/a', '[::1]:80', 'http://[::1]:8443/port/a'],
    ['/path/a?b=c', 'here.test', 'http://here.test/new?b=c'],
    ['/path-query/a?b=c', 'here.test', 'http://here.test/new?d=e'],
    ['/prefix/a/b?c', 'here.test', 'http://here.test/other/a/b?c'],
    ['/regex/12/x?c', 'here.test', 'http://here.test/number-12?c'],
    ['/https/a?b', 'here.test', 'https://here.test/https/a?b'],
    ['/https/a', 'here.test:80', 'https://here.test/https/a'],
    ['/https/a', 'here.test:8080', 'https://here.test:8080/https/a'],
    ['/scheme/a', 'here.test', 'ftp://here.test/scheme/a'],
    ['/strip/a?b=c', 'here.test', 'http://here.test/strip/a'],
    ['/all/a?b=c', 'here.test:80', 'https://there.test:444/x'],
    ['/302/', 'here.test', 'http://here.test/new', 302],
    ['/303/', 'here.test', 'http://here.test/new', 303],
    ['/307/', 'here.test', 'http://here.test/new', 307],
    ['/308/', 'here.test', 'http://here.test/new', 308],
  ];
  for (const [path, host, location, expected = 301] of cases) {
    const { status, headers, body } = await proxy.on('redirects', path, { headers: { host } });
    t.match({ status, location: headers.location }, { status: expected, location }, `${host}${path}`);
    t.equal(body, '');
  }
  const { headers } = await proxy.on('redirects', '/host/', { headers: { host: 'here.test' } });
  t.equal(headers['x-route'], 'redirected', 'response headers of the route are added');
});

t.test('a redirect keeps https for a client that used it at an earlier proxy', async (t) => {
  const cases: [string, string, string, string, string][] = [
    ['redirects', 'https', '/path/a', 'here.test', 'https://here.test/new'],
    ['redirects', 'HTTPS', '/host/a', 'here.test', 'https://there.test/host/a'],
    ['behindEdge', 'https', '/path/a', 'here.test', 'https://here.test/new'],
    ['edge', 'https', '/path/a', 'here.test', 'http://here.test/new'],
    ['redirects', 'http', '/path/a', 'here.test', 'http://here.test/new'],
    ['redirects', 'gopher', '/path/a', 'here.test', 'http://here.test/new'],
    ['redirects', 'https', '/https/a', 'here.test:443', 'https://here.test:443/https/a'],
    ['redirects', 'https', '/scheme/a', 'here.test:443', 'ftp://here.test/scheme/a'],
    ['redirects', 'https', '/scheme/a', 'here.test:80', 'ftp://here.test:80/scheme/a'],
  ];
  for (const [listener, proto, path, host, location] of cases) {
    const { headers } = await proxy.on(listener, path, { headers: { host, 'x-forwarded-proto': proto } });
    t.equal(headers.location, location, `${listener}: ${proto} ${host}${path}`);
  }
  const { headers } = await proxy.on('redirects', '/host/', { headers: { 'x-forwarded-proto': 'https' } });
  t.equal(headers['x-scheme'], 'https', '%REQ(:SCHEME)%');
});

t.test("an absolute URL sets the client's scheme where that is trusted", async (t) => {
  const cases: [string, string, Record<string, string>, string][] = [
    ['redirects', 'https://here.test/path/a', {}, 'https'],
    ['redirects', 'HTTPS://here.test/path/a', { 'x-forwarded-proto': 'http' }, 'https'],
    ['redirects', 'http://here.test/path/a', { 'x-forwarded-proto': 'https' }, 'http'],
    ['behindEdge', 'https://here.test/path/a', {}, 'https'],
    ['edge', 'http://here.test/path/a', {}, 'http'],
  ];
  for (const [listener, url, headers, scheme] of cases) {
    const answer = await proxy.on(listener, url, { headers });
    t.match(answer.headers, { location: `${scheme}://here.test/new`, 'x-scheme': scheme }, `${listener}: ${url}`);
  }
});

t.test('a direct response is as configured, from every data source', async (t) => {
  const { status, body, headers } = await proxy.on('direct', '/inline', { method: 'POST', body: 'ignored' });
  t.match({ status, body }, { status: 201, body: 'made up' });
  t.match(headers, { 'content-length': '7', 'content-type': 'text/plain', server: 'front', 'x-route': 'direct' });
  t.ok(Math.abs(Date.parse(headers.date!) - Date.now()) < 120_000, 'a date header that is about now');

  t.match(await proxy.on('direct', '/file'), { status: 200, body: 'a page\n' });
  t.match(await proxy.on('direct', '/bytes'), { status: 200, body: '\x00\xff!' });
  t.match(await proxy.on('direct', '/none'), { status: 503, body: '', headers: { 'content-length': '0' } });
  t.match(await proxy.on('direct', '/html'), { body: '<p>', headers: { 'content-type': 'text/html' } });
  const json = await rawExchange(proxy.ports['direct']!, 'GET /json HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n');
  t.same(json.text.match(/^content-type: .*/gim), ['content-type: application/json'], 'one content-type');
  const noContent = await proxy.on('direct', '/204');
  t.equal(noContent.status, 204);
  t.equal(noContent.headers['content-length'], undefined, '204 has no content-length');
  t.equal((await proxy.on('direct', '/large')).body, LARGE);
});

t.test('a response to HEAD has the headers and no body', async (t) => {
  const { text } = await rawExchange(
    proxy.ports['direct']!,
    'HEAD /inline HTTP/1.1\r\nhost: a\r\n\r\nGET /inline HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n',
  );
  const head = parseMessage(text);
  t.match(head, { status: 201, headers: { 'content-length': '7' } });
  t.match(parseMessage(head.rest), { status: 201, rest: 'made up' }, 'the next response follows at once');
});

function redirectRoutes(): Config[] {
  const redirects: Record<string, Config> = {
    host: { host_redirect: 'there.test' },
    port: { port_redirect: 8443 },
    path: { path_redirect: '/new' },
    'path-query': { path_redirect: '/new?d=e' },
    prefix: { prefix_rewrite: '/other/' },
    regex: { regex_rewrite: { pattern: { regex: '^/regex/([0-9]+)/.*' }, substitution: '/number-\\1' } },
    https: { https_redirect: true },
    scheme: { scheme_redirect: 'ftp' },
    strip: { strip_query: true },
    all: {
      https_redirect: true,
      host_redirect: 'there.test',
      port_redirect: 444,
      path_redirect: '/x',
      strip_query: true,
    },
    302: { path_redirect: '/new', response_code: 'FOUND' },
    303: { path_redirect: '/new', response_code: 'SEE_OTHER' },
    307: { path_redirect: '/new', response_code: 'TEMPORARY_REDIRECT' },
    308: { path_redirect: '/new', response_code: 'PERMANENT_REDIRECT' },
  };
  return Object.entries(redirects).map(([name, redirect]) => ({
    match: { prefix: `/${name}/` },
    redirect,
    response_headers_to_add: [headerOption('x-route', 'redirected'), headerOption('x-scheme', '%REQ(:SCHEME)%')],
  }));
}

function directRoutes(): Config[] {
  const direct = (path: string, status: number, body?: Config, more: Config = {}): Config => ({
    match: { path },
    direct_response: { status, ...(body && { body }) },
    ...more,
  });
  return [
    direct(
      '/inline',
      201,
      { inline_string: 'made up' },
      {
        response_headers_to_add: [headerOption('x-route', 'direct')],
      },
    ),
    direct('/file', 200, { filename: join(directory, 'page.txt') }),
    direct('/bytes', 200, { inline_bytes: 'AP8h' }),
    direct('/none', 503),
    direct('/204', 204),
    direct(
      '/html',
      200,
      { inline_string: '<p>' },
      {
        response_headers_to_add: [headerOption('content-type', 'text/html', { append_action: OVERWRITE })],
      },
    ),
    direct(
      '/json',
      200,
      { inline_string: '{}' },
      {
        response_headers_to_add: [headerOption('content-type', 'application/json')],
      },
    ),
    direct('/large', 200, { inline_string: LARGE }),
  ];
}

besideEnvoy('a direct response with 201 or 3xx names the URL of its request', async (t, program) => {
  const statuses = [200, 201, 302, 304, 400];
  const routes = statuses.map((status) => ({ match: { prefix: `/${status}` }, direct_response: { status } }));
  const { get } = await startProxy(t, { ...program, listeners: { all: managerOf(routes) } });
  for (const status of statuses) {
    const { headers, ...answer } = await get(`/${status}/a?b`, { headers: { host: 'a.example:1' } });
    t.match(answer, { status });
    const isNamed = status === 201 || (status >= 300 && status < 400);
    t.equal(headers['location'], isNamed ? `http://a.example:1/${status}/a?b` : undefined, `${status}`);
  }
});
