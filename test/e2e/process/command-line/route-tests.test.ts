// --route-tests: where requests would go, checked without sockets.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { packagePath } from '../../../../src/common/package/package-root.js';
import { bootstrap, type Config, httpListener, tempDir } from '../../harness/index.js';
import { runBaton } from './run.js';

const directory = tempDir(t);

const SHOP = {
  name: 'shop',
  virtual_hosts: [
    {
      name: 'shop',
      domains: ['shop.example'],
      virtual_clusters: [{ name: 'carts', headers: [{ name: ':path', string_match: { prefix: '/cart' } }] }],
      routes: [
        {
          name: 'admin',
          match: { prefix: '/admin', headers: [{ name: 'x-role', string_match: { exact: 'admin' } }] },
          route: { cluster: 'a' },
        },
        {
          match: { path_separated_prefix: '/cart' },
          route: { cluster: 'b', prefix_rewrite: '/v2', host_rewrite_literal: 'cart.internal' },
        },
        {
          match: { prefix: '/old' },
          redirect: { path_redirect: '/new', https_redirect: true, response_code: 'FOUND' },
        },
        {
          match: { prefix: '/split' },
          route: {
            weighted_clusters: {
              clusters: [
                { name: 'a', weight: 10 },
                { name: 'b', weight: 90 },
              ],
            },
          },
        },
        {
          match: { prefix: '/half', runtime_fraction: { runtime_key: 'k', default_value: { numerator: 50 } } },
          route: { cluster: 'a' },
        },
        {
          match: { path: '/ok' },
          direct_response: { status: 204 },
          response_headers_to_add: [{ header: { key: 'x-a', value: 'b' } }],
        },
      ],
    },
    {
      name: 'any',
      domains: ['*'],
      require_tls: 'EXTERNAL_ONLY',
      routes: [{ match: { prefix: '/' }, route: { cluster: 'a' } }],
    },
  ],
};
const CONFIG = bootstrap({
  listeners: [httpListener('web', 0, { route_config: SHOP })],
  clusters: [
    { name: 'a', type: 'STATIC' },
    { name: 'b', type: 'STATIC' },
  ],
});

/** Validates the configuration with these tests. */
async function check(tests: readonly Config[] | string, ...args: string[]) {
  const file = join(directory, 'tests.json');
  writeFileSync(file, typeof tests === 'string' ? tests : JSON.stringify({ tests }));
  return runBaton(t, { config: CONFIG, args: ['--mode', 'validate', '-l', 'off', '--route-tests', file, ...args] });
}

const request = (path: string, more: Config = {}) => ({ authority: 'shop.example', path, method: 'GET', ...more });

t.test('tests of clusters, rewrites, redirects, weights, fractions and headers pass', async (t) => {
  const role = { additional_request_headers: [{ key: 'x-role', value: 'admin' }] };
  const original = { name: 'x-envoy-original-path', string_match: { exact: '/cart/1?q=2' } };
  const { code, stdout } = await check(
    [
      [request('/admin/x', role), { cluster_name: 'a', route_name: 'admin', virtual_host_name: 'shop' }],
      [request('/admin/x'), { cluster_name: '', virtual_host_name: 'shop' }],
      [request('/cart/1?q=2'), { cluster_name: 'b', path_rewrite: '/v2/1?q=2', virtual_cluster_name: 'carts' }],
      [
        request('/cart/1?q=2'),
        { request_header_matches: [original, { name: ':authority', string_match: { prefix: 'cart.' } }] },
      ],
      [request('/cart/1'), { host_rewrite: 'cart.internal', virtual_host_name: 'shop' }],
      [request('/ok'), { virtual_cluster_name: 'other' }],
      [request('/old?a'), { path_redirect: 'https://shop.example/new?a', status: 302, cluster_name: '' }],
      [request('/split', { random_value: '9' }), { cluster_name: 'a' }],
      [request('/split', { random_value: '18446744073709551615' }), { cluster_name: 'b' }],
      [request('/half', { random_value: 49, runtime: 'k' }), { cluster_name: 'a' }],
      [request('/half', { random_value: 50, runtime: 'k' }), { cluster_name: '' }],
      [request('/half', { random_value: 0 }), { cluster_name: '' }],
      [request('/ok'), { status: 204, response_header_matches: [{ name: 'x-a', string_match: { exact: 'b' } }] }],
      [request('/x', { authority: 'other' }), { path_redirect: 'https://other/x', status: 301 }],
      [request('/x', { authority: 'other', ssl: true }), { cluster_name: 'a' }],
      [request('/x', { authority: 'other', internal: true }), { cluster_name: 'a' }],
    ].map(([input, validate], index) => ({ test_name: `${index}`, input, validate })),
  );
  t.match(stdout, /route tests '.*tests\.json': 16 passed, 0 failed\n$/);
  t.equal(code, 0);
});

t.test('a test that fails says what was found, and why', async (t) => {
  const tests = [{ test_name: 'no role', input: request('/admin'), validate: { cluster_name: 'a' } }];
  const { code, stdout } = await check(tests);
  t.equal(code, 1);
  t.match(stdout, /0 passed, 1 failed\n {2}no role:\n {4}cluster_name: expected 'a', found ''\n/);
  t.match(
    stdout,
    /virtual host 'shop', by the domain 'shop\.example'\n +route 0 'admin' does not match: headers\[0\]: \{"name":"x-role"/,
  );
  const json = await check(tests, '--format', 'json');
  t.equal(json.code, 1);
  t.match(JSON.parse(json.stdout), {
    ok: false,
    errors: [],
    route_tests: [{ name: 'no role', mistakes: ["cluster_name: expected 'a', found ''"] }],
  });
});

t.test('tests that cannot be run are named', async (t) => {
  const input = request('/');
  for (const [test, mistake] of [
    [{ test_name: 'x', input, validate: {} }, /it expects nothing, so the test cannot fail/],
    [
      { test_name: 'x', input: request('no-slash'), validate: { cluster_name: '' } },
      /invalid value of a path: "no-slash"/,
    ],
    [
      { test_name: 'x', input: request('/', { method: 'G T' }), validate: { cluster_name: '' } },
      /invalid value of a method: "G T"/,
    ],
    [
      { test_name: 'x', input: request('/', { authority: 'other' }), validate: { cluster_name: 'a' } },
      /its require_tls redirects the request to HTTPS/,
    ],
    [
      { test_name: 'x', input, validate: { cluster_name: '' }, route_config: 'y' },
      /no route configuration has these names; there are 'shop' of listener 'web'/,
    ],
  ] as const) {
    const { code, stdout } = await check([test]);
    t.equal(code, 1);
    t.match(stdout, mistake);
  }
});

t.test('an invalid file is refused with its line', async (t) => {
  for (const [text, mistake] of [
    [
      '{"tests": [{"test_name": "x",\n"input": {"authority": "a", "path": "/", "method": "GET"}, "validate": {"cluster": ""}}]}',
      /tests\.json:2:\d+: tests\[0\]\.validate\.cluster: unknown field/,
    ],
    ['{"tests": []}', /tests: it must/],
    ['{"tests": [', /tests\.json:1:/],
  ] as const) {
    const { code, stderr, stdout } = await check(text);
    t.equal(code, 1);
    t.match(stderr, mistake);
    t.equal(stdout, '');
  }
});

t.test('the example passes', async (t) => {
  const tests = packagePath('examples/route-tests/front-proxy.yaml');
  const args = [packagePath('examples/front-proxy.yaml'), '--mode', 'validate', '-l', 'off', '--route-tests', tests];
  const { code, stdout } = await runBaton(t, { args });
  t.equal(code, 0, stdout);
});
