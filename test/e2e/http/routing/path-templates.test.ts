// path_match_policy and path_rewrite_policy with path templates. All results are Envoy's, except where a test says otherwise.

import t from 'tap';
import { besideEnvoy } from '../../harness/envoy.js';
import {
  bootstrap,
  type Config,
  httpListener,
  startBaton,
  startEchoUpstream,
  staticCluster,
} from '../../harness/index.js';
import { answering, managerOf, routeConfig, routeTo, startProxy } from '../proxy.js';

const extension = (kind: string, fields: Config) => ({
  name: 'template',
  typed_config: { '@type': `type.googleapis.com/envoy.extensions.path.${kind}`, ...fields },
});
const match = (path_template: string) => ({
  path_match_policy: extension('match.uri_template.v3.UriTemplateMatchConfig', { path_template }),
});
const rewrite = (path_template_rewrite: string) => ({
  path_rewrite_policy: extension('rewrite.uri_template.v3.UriTemplateRewriteConfig', { path_template_rewrite }),
});

besideEnvoy('templates match paths, and their variables make new ones', async (t, program) => {
  const upstream = await startEchoUpstream(t);
  const { get } = await startProxy(t, {
    ...program,
    listeners: {
      all: managerOf([
        routeTo(match('/a/{id}/b/{rest=**}'), 'host', rewrite('/z/{rest}/{id}.x')),
        routeTo(match('/c/*/d/{f=e/*}'), 'host', rewrite('/{f}')),
        routeTo(match('/v/{x=**/a}'), 'host', rewrite('/{x}')),
        routeTo(match('/regex/{x}'), 'host', {
          regex_rewrite: { pattern: { regex: '^/regex' }, substitution: '/new' },
        }),
        { match: match('/gone/{x}'), redirect: { path_redirect: '/here' } },
        answering({ prefix: '/' }, 'none'),
      ]),
    },
    clusters: [staticCluster('host', upstream.port)],
  });
  for (const [path, expected] of [
    ['/a/1/b/c/d?q=1', '/z/c/d/1.x?q=1'],
    ['/a/1/b/', '/z//1.x'],
    ['/a/1/b', 'none'],
    ['/a//b/x', 'none'],
    ['/a/%7B/b/x%20y', '/z/x%20y/%7B.x'],
    ['/c/x/d/e/f', '/e/f'],
    ['/c/x/d/e', 'none'],
    ['/v/1/2/a', '/1/2/a'],
    ['/v/a', 'none'],
    ['/v/1/ab', 'none'],
    ['/regex/1', '/new/1'],
  ] as const) {
    const { body } = await get(path);
    t.equal(body === 'none' ? body : (JSON.parse(body) as { url: string }).url, expected, path);
  }
  const { headers } = await get('/gone/1', { headers: { host: 'a' } });
  t.equal(headers['location'], 'http://a/here');
});

t.test('invalid templates and combinations are refused', async (t) => {
  const templates = [
    'a',
    '/{id',
    '/{id}/{id}',
    '/{1}',
    '/{a}{b}',
    '/**/{x=**}',
    '/{x=**}/*',
    '/{x=}',
    '/{x=*.m}',
    '/{x=**/*}',
    '/{x=**/a}/*',
    '/{x}//',
    '/a b',
  ];
  templates.push('/{a}/{b}/{c}/{d}/{e}/{f}', '/\u00e9');
  const cases: Config[] = [
    ...templates.map((template) => routeTo(match(template), 'host')),
    ...['z', '/{id', '/{nope}', '/a//b', '/x?y', '/x y', '/{id=*}', '/}'].map((text) =>
      routeTo(match('/{id}'), 'host', rewrite(text)),
    ),
    routeTo({ prefix: '/' }, 'host', rewrite('/a')),
    routeTo(match('/{id}'), 'host', { prefix_rewrite: '/a' }),
    routeTo(match('/{id}'), 'host', { prefix_rewrite: '/a', ...rewrite('/a') }),
    { match: match('/{id}'), redirect: { prefix_rewrite: '/a' } },
  ];
  const hosts = [{ name: 'v', domains: ['*'], routes: cases }];
  const listener = httpListener('in', 0, { route_config: routeConfig(hosts) });
  const config = bootstrap({ listeners: [listener], clusters: [staticCluster('host', 1)] });
  const baton = await startBaton(t, { config, args: ['--mode', 'validate'], wait: 'spawned' });
  t.equal((await baton.exited).code, 1);
  for (const index of cases.keys())
    t.match(baton.stderr, new RegExp(`routes\\[${index}\\]`), JSON.stringify(cases[index]));
});
