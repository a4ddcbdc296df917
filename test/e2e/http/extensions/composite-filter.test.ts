// composite and match_delegate: filters that run for some requests. The expected results are those of Envoy 1.40.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { besideEnvoy, type ProxyProgram } from '../../harness/envoy.js';
import {
  bootstrap,
  type Config,
  fileAccessLog,
  httpListener,
  httpRequest,
  ROUTER_FILTER,
  startBaton,
  startUpstream,
  staticCluster,
  type Teardown,
  tempDir,
  waitFor,
} from '../../harness/index.js';
import { managerOf } from '../proxy.js';

const FILTERS = 'type.googleapis.com/envoy.extensions.filters.http';
const COMPOSITE = `${FILTERS}.composite.v3`;
const MATCHING = 'type.googleapis.com/envoy.extensions.common.matching.v3';
const STATE = 'envoy.extensions.filters.http.composite.matched_actions';
const input = (kind: string, name: string): Config => ({
  name: 'input',
  typed_config: { '@type': `type.googleapis.com/envoy.type.matcher.v3.Http${kind}HeaderMatchInput`, header_name: name },
});

/** Adds a header to the response. */
const adds = (name: string, key: string, value = '1'): Config => ({
  name,
  typed_config: {
    '@type': `${FILTERS}.header_mutation.v3.HeaderMutation`,
    mutations: { response_mutations: [{ append: { header: { key, value } } }] },
  },
});
/** Answers with 418 after a while. */
const aborts: Config = {
  name: 'abort',
  typed_config: {
    '@type': `${FILTERS}.fault.v3.HTTPFault`,
    delay: { fixed_delay: '0.05s', percentage: { numerator: 100 } },
    abort: { http_status: 418, percentage: { numerator: 100 } },
  },
};
const delays: Config = {
  name: 'delay',
  typed_config: {
    '@type': `${FILTERS}.fault.v3.HTTPFault`,
    delay: { fixed_delay: '0.05s', percentage: { numerator: 100 } },
  },
};

const executes = (action: Config): Config => ({
  action: { name: 'execute', typed_config: { '@type': `${COMPOSITE}.ExecuteFilterAction`, ...action } },
});
const SKIPS: Config = {
  action: {
    name: 'skip',
    typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.common.matcher.action.v3.SkipFilter' },
  },
};
const byHeader = (name: string, map: Config, kind = 'Request'): Config => ({
  matcher_tree: { input: input(kind, name), exact_match_map: { map } },
});
const delegate = (name: string, inner: Config, xds_matcher?: Config): Config => ({
  name,
  typed_config: {
    '@type': `${MATCHING}.ExtensionWithMatcher`,
    extension_config: inner,
    ...(xds_matcher && { xds_matcher }),
  },
});
const composite = (more: Config): Config => ({
  name: 'comp',
  typed_config: { '@type': `${COMPOSITE}.Composite`, ...more },
});

const MATCHER = byHeader('do', {
  one: executes({ typed_config: adds('first', 'x-set', 'one') }),
  chain: executes({ filter_chain: { typed_config: [adds('a', 'x-set', 'a'), adds('b', 'x-set', 'b')] } }),
  named: executes({ filter_chain_name: 'known' }),
  missing: executes({ filter_chain_name: 'unknown' }),
  never: executes({ sample_percent: { default_value: { numerator: 0 } }, typed_config: adds('first', 'x-set') }),
  always: executes({
    sample_percent: { default_value: { numerator: 100 } },
    typed_config: adds('first', 'x-set', 'always'),
  }),
  abort: executes({ filter_chain: { typed_config: [adds('a', 'x-set', 'a'), aborts] } }),
  delay: executes({ typed_config: delays }),
  skip: SKIPS,
});
const NAMED = { known: { typed_config: [adds('c', 'x-set', 'c'), adds('d', 'x-set', 'd')] } };

interface Rig {
  /** Returns the status and the fields of the response whose names begin with x-. */
  readonly ask: (path: string, headers?: Record<string, string>, body?: string) => Promise<string>;
  readonly logged: (lines: number) => Promise<string[]>;
  readonly stats: (expected: Record<string, number>) => Promise<void>;
}

const upstream = await startUpstream(t, (request, answer) => {
  let length = 0;
  request.on('data', (piece: Buffer) => (length += piece.length));
  request.on('end', () => {
    if (request.headers['want'] !== undefined) answer.setHeader('x-host', request.headers['want']);
    answer.end(String(length));
  });
});

async function start(t: Teardown, program: ProxyProgram, filters: Config[], ofRoute: Config = {}): Promise<Rig> {
  const log = join(tempDir(t), 'log');
  const routes = [
    { match: { prefix: '/route' }, route: { cluster: 'host' }, typed_per_filter_config: ofRoute },
    { match: { prefix: '/' }, route: { cluster: 'host' } },
  ];
  const config = managerOf([], {
    stat_prefix: 'x',
    access_log: [fileAccessLog(log, `%FILTER_STATE(${STATE})%\n`)],
    route_config: { name: 'r', virtual_hosts: [{ name: 'v', domains: ['*'], routes }] },
    http_filters: [...filters, ROUTER_FILTER],
  });
  const baton = await startBaton(t, {
    ...program,
    args: ['--file-flush-interval-msec', '20'],
    config: {
      node: { id: 'test', cluster: 'test' },
      ...bootstrap({
        listeners: [httpListener('http', 0, config)],
        clusters: [staticCluster('host', upstream.port)],
      }),
    },
  });
  const port = await baton.listenerPort('http');
  return {
    async ask(path, headers = {}, body = '') {
      const answer = await httpRequest(port, path, { headers, ...(body && { method: 'POST', body }) });
      const fields: string[] = [];
      const { rawHeaders } = answer as unknown as { rawHeaders: string[] };
      for (let i = 0; i < rawHeaders.length; i += 2)
        if (/^x-(?!envoy)/i.test(rawHeaders[i]!)) fields.push(`${rawHeaders[i]}=${rawHeaders[i + 1]}`);
      return [answer.status, ...fields].join(' ');
    },
    async logged(count) {
      const lines = () => readFileSync(log, 'utf8').split('\n').slice(0, -1);
      await waitFor(() => lines().length >= count, { what: 'the lines of all requests' });
      return lines();
    },
    stats: (expected) => baton.waitForStats(expected),
  };
}

besideEnvoy('a composite runs the filters that its matcher selects', async (t, program) => {
  const rig = await start(
    t,
    program,
    [adds('before', 'x-before'), composite({ named_filter_chains: NAMED, matcher: MATCHER })],
    {
      comp: {
        '@type': `${COMPOSITE}.CompositePerRoute`,
        matcher: { on_no_match: executes({ filter_chain_name: 'known' }) },
      },
    },
  );
  const todo = (what: string, path = '/') => rig.ask(path, { do: what });
  t.equal(await todo('nothing'), '200 x-before=1');
  t.equal(await todo('one'), '200 x-set=one x-before=1');
  t.equal(await todo('chain'), '200 x-set=b x-set=a x-before=1', 'the last filter has the response first');
  t.equal(await todo('named'), '200 x-set=d x-set=c x-before=1');
  t.equal(await todo('missing'), '200 x-before=1');
  t.equal(await todo('never'), '200 x-before=1');
  t.equal(await todo('always'), '200 x-set=always x-before=1');
  t.equal(await todo('skip'), '200 x-before=1');
  t.match(await todo('abort'), /^418 x-set=a x-before=1/, 'filters may answer');
  t.equal(await rig.ask('/', { do: 'delay' }, 'x'.repeat(100_000)), '200 x-before=1', 'filters may hold the request');
  t.equal(await todo('one', '/route'), '200 x-set=d x-set=c x-before=1', 'the matcher of the route');
  await rig.stats({ 'http.x.composite.filter_delegation_success': 7, 'http.x.composite.filter_delegation_error': 0 });
  t.strictSame(await rig.logged(11), [
    '-',
    '{"comp":"first"}',
    '{"comp":"filter_chain"}',
    '{"comp":"known"}',
    '-',
    '-',
    '{"comp":"first"}',
    '-',
    '{"comp":"filter_chain"}',
    '{"comp":"delay"}',
    '{"comp":"known"}',
  ]);
});

besideEnvoy('a filter with a matcher is skipped for some requests', async (t, program) => {
  const matcher = byHeader('skip', { yes: SKIPS });
  const rig = await start(
    t,
    program,
    [delegate('d', adds('inner', 'x-inner'), matcher), delegate('none', adds('inner', 'x-none'))],
    {
      d: { '@type': `${MATCHING}.ExtensionWithMatcherPerRoute`, xds_matcher: { on_no_match: SKIPS } },
    },
  );
  t.equal(await rig.ask('/'), '200 x-inner=1', 'a filter without a matcher never runs');
  t.equal(await rig.ask('/', { skip: 'yes' }), '200');
  t.equal(await rig.ask('/', { skip: 'no' }), '200 x-inner=1');
  t.equal(await rig.ask('/route'), '200', 'the matcher of the route');
});

besideEnvoy('a matcher of responses skips the filter for them', async (t, program) => {
  const filters = [delegate('d', adds('inner', 'x-inner'), byHeader('x-host', { skip: SKIPS }, 'Response'))];
  const rig = await start(t, program, filters);
  t.equal(await rig.ask('/'), '200 x-inner=1');
  t.equal(await rig.ask('/', { want: 'skip' }), '200 x-host=skip');
  t.equal(await rig.ask('/', { want: 'other' }, 'body'), '200 x-host=other x-inner=1');
});

besideEnvoy('a composite inside a filter with a matcher obeys that matcher', async (t, program) => {
  const rig = await start(t, program, [delegate('d', composite({ named_filter_chains: NAMED }), MATCHER)]);
  t.equal(await rig.ask('/', { do: 'one' }), '200 x-set=one');
  t.equal(await rig.ask('/', { do: 'named' }), '200 x-set=d x-set=c');
  t.equal(await rig.ask('/'), '200');
});

besideEnvoy('an action executes a filter whose configuration is discovered', async (t, program) => {
  const file = join(tempDir(t), 'filter.json');
  const typed = (adds('found', 'x-found') as { typed_config: Config }).typed_config;
  const resource = {
    '@type': 'type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig',
    name: 'found',
    typed_config: typed,
  };
  writeFileSync(file, JSON.stringify({ version_info: '1', resources: [resource] }));
  const dynamic_config = {
    name: 'found',
    config_discovery: {
      config_source: { path_config_source: { path: file }, resource_api_version: 'V3' },
      type_urls: [(typed as { '@type': string })['@type']],
    },
  };
  const rig = await start(t, program, [composite({ matcher: byHeader('do', { find: executes({ dynamic_config }) }) })]);
  t.equal(await rig.ask('/', { do: 'find' }), '200 x-found=1');
  t.equal(await rig.ask('/'), '200');
});

besideEnvoy('configurations that cannot be used are refused', async (t, program) => {
  const cases: [what: string, filter: Config][] = [
    ['an empty chain', composite({ matcher: { on_no_match: executes({ filter_chain: {} }) } })],
    ['an empty named chain', composite({ named_filter_chains: { empty: {} } })],
    ['an action without a filter', composite({ matcher: { on_no_match: executes({}) } })],
    ['no filter', { name: 'd', typed_config: { '@type': `${MATCHING}.ExtensionWithMatcher` } }],
    ['no HTTP filter', delegate('d', { name: 'x', typed_config: input('Request', 'x').typed_config as Config })],
  ];
  for (const [what, filter] of cases) {
    const manager = managerOf([], { route_config: { name: 'r' }, http_filters: [filter, ROUTER_FILTER] });
    const baton = await startBaton(t, {
      ...program,
      args: ['--mode', 'validate'],
      wait: 'spawned',
      config: bootstrap({ listeners: [httpListener('http', 0, manager)], clusters: [] }),
    });
    t.not((await baton.exited).code, 0, what);
  }
});

t.test('what Envoy accepts without an effect is refused', async (t) => {
  const cases: [what: string, filter: Config, told: RegExp][] = [
    [
      'a terminal filter',
      composite({ matcher: { on_no_match: executes({ typed_config: ROUTER_FILTER }) } }),
      /ends a chain, and cannot run inside a filter/,
    ],
    [
      'responses do not select filters',
      composite({ matcher: byHeader('x', { y: executes({ filter_chain_name: 'known' }) }, 'Response') }),
      /is not an input of this matcher/,
    ],
  ];
  for (const [what, filter, told] of cases) {
    const manager = managerOf([], { route_config: { name: 'r' }, http_filters: [filter, ROUTER_FILTER] });
    const baton = await startBaton(t, {
      args: ['--mode', 'validate'],
      wait: 'spawned',
      config: bootstrap({ listeners: [httpListener('http', 0, manager)], clusters: [] }),
    });
    t.equal((await baton.exited).code, 1, what);
    t.match(baton.stderr, told, what);
  }
});

t.test('a filter that waits does not hide those after it in its chain', async (t) => {
  const matcher = { on_no_match: executes({ filter_chain: { typed_config: [delays, aborts, adds('a', 'x-set')] } }) };
  const rig = await start(t, { command: undefined }, [composite({ matcher })]);
  t.match(await rig.ask('/'), /^418/);
});
