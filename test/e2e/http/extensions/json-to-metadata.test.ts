// The json_to_metadata filter: values of JSON bodies become dynamic metadata.

import t from 'tap';
import { besideEnvoy, type ProxyProgram } from '../../harness/envoy.js';
import {
  bootstrap,
  type Config,
  fileAccessLog,
  httpListener,
  httpRequest,
  logLines,
  ROUTER_FILTER,
  startBaton,
  startUpstream,
  staticCluster,
  type Teardown,
  tempDir,
  waitFor,
} from '../../harness/index.js';

const FILTER = 'envoy.filters.http.json_to_metadata';
const TYPE = 'type.googleapis.com/envoy.extensions.filters.http.json_to_metadata.v3.JsonToMetadata';
const LIMIT = 1_000_000;

const rule = (path: string[], key: string, type?: string): Config => ({
  selectors: path.map((part) => ({ key: part })),
  on_present: { metadata_namespace: 'ns', key, ...(type && { type }) },
  on_missing: { metadata_namespace: 'ns', key, value: 'missing' },
  on_error: { metadata_namespace: 'ns', key, value: 'error' },
});
const RULES = [
  rule(['s'], 's', 'STRING'),
  rule(['n'], 'n', 'NUMBER'),
  rule(['p'], 'p', 'PROTOBUF_VALUE'),
  rule(['a', 'b'], 'deep', 'STRING'),
  { selectors: [{ key: 'x' }], on_present: { metadata_namespace: 'ns', key: 'fixed', value: 'f' } },
  {
    selectors: [{ key: 'old' }],
    on_present: { metadata_namespace: 'ns', key: 'old', preserve_existing_metadata_value: true },
  },
];
const OWN = {
  typed_per_filter_config: { [FILTER]: { '@type': TYPE, request_rules: { rules: [rule(['s'], 'own')] } } },
};
const ROUTES = [
  { match: { prefix: '/own' }, route: { cluster: 'host' }, ...OWN },
  { match: { prefix: '/' }, route: { cluster: 'host' } },
];
const METADATA = {
  name: 'metadata',
  typed_config: {
    '@type': 'type.googleapis.com/envoy.extensions.filters.http.set_metadata.v3.Config',
    metadata: [{ metadata_namespace: 'ns', value: { old: 'kept' } }],
  },
};
const LISTENERS: Readonly<Record<string, Config>> = {
  request: { request_rules: { rules: RULES } },
  response: { response_rules: { rules: [rule(['len'], 'len', 'NUMBER')] } },
  types: {
    request_rules: {
      rules: [rule(['s'], 's')],
      allow_content_types: ['text/x'],
      allow_empty_content_type: true,
      allow_content_types_regex: { regex: 'application/.*json' },
    },
  },
};

async function start(t: Teardown, program: ProxyProgram) {
  const host = await startUpstream(t, (request, answer) => {
    const { body, type } = { body: request.headers['x-body'], type: request.headers['x-type'] };
    answer.setHeader('content-type', typeof type === 'string' ? type : 'application/json');
    request.resume().on('end', () => answer.end(body === 'big' ? 'x'.repeat(3 * LIMIT) : (body ?? '{"len":3}')));
  });
  const log = `${tempDir(t)}/log`;
  const listeners = Object.entries(LISTENERS).map(([name, rules]) => ({
    ...httpListener(name, 0, {
      access_log: [fileAccessLog(log, '%DYNAMIC_METADATA(ns)%\n')],
      route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes: ROUTES }] },
      http_filters: [METADATA, { name: FILTER, typed_config: { '@type': TYPE, ...rules } }, ROUTER_FILTER],
    }),
    per_connection_buffer_limit_bytes: LIMIT,
  }));
  const baton = await startBaton(t, {
    ...program,
    args: ['--file-flush-interval-msec', '10'],
    config: bootstrap({ listeners, clusters: [staticCluster('host', host.port)] }),
  });
  let lines = 0;
  /** Returns the status, and the metadata without the one that was there before. */
  const post = async (listener: string, body: string, headers: Record<string, string> = {}, path = '/') => {
    const request = { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } };
    const { status } = await httpRequest(await baton.listenerPort(listener), path, request);
    lines++;
    const line = await waitFor(() => logLines(log)[lines - 1], { what: 'a line' });
    const { old, ...set } = JSON.parse(line) as Record<string, unknown>;
    return { status, set, old };
  };
  return { baton, post };
}

besideEnvoy('values of JSON bodies become metadata as in Envoy', async (t, program) => {
  const { baton, post } = await start(t, program);
  const absent = { s: 'missing', n: 'missing', p: 'missing', deep: 'missing', fixed: 'f' };
  const { fixed: _fixed, ...missing } = absent;
  const error = { s: 'error', n: 'error', p: 'error', deep: 'error' };

  await t.test('values are converted, or are missing', async (t) => {
    const cases: readonly [body: string, set: object][] = [
      ['{"s":"x","n":1,"p":true,"a":{"b":"c"},"old":"new"}', { s: 'x', n: 1, p: true, deep: 'c', fixed: 'f' }],
      ['{"s":1,"n":" 2.5 ","p":"t","a":{"b":1.5}}', { s: '1', n: 2.5, p: 't', deep: '1.500000', fixed: 'f' }],
      ['{"s":true,"n":false,"p":1.5,"a":"t"}', { ...absent, s: '1', n: 0, p: 1.5 }],
      ['{"s":[1],"n":"bad","p":{"o":1},"a":{"b":null}}', absent],
      ['{"s":"","n":"","p":"","a":[1]}', { n: 'missing', p: '', deep: 'missing', fixed: 'f' }],
      [`{"s":"${'y'.repeat(9000)}"}`, absent],
      ['{"a.b":1,"a":{"b":"z"},"s":1,"s":"A\\u0041"}', { ...absent, deep: 'z', s: 'AA' }],
      ['\ufeff {"s":"x"} ', { ...absent, s: 'x' }],
      ['[]', absent],
      ['"text"', missing],
      ['null', missing],
      ['', missing],
      ['bad', error],
      ['{"s":"x"}more', error],
    ];
    for (const [body, set] of cases)
      t.same(await post('request', body), { status: 200, set, old: 'kept' }, body.slice(0, 40));
  });

  await t.test('bodies of other types and too large ones are not read', async (t) => {
    t.same((await post('request', '{}', { 'content-type': 'application/json; charset=utf-8' })).set, error);
    for (const type of ['text/x', 'application/vnd.json', ''])
      t.same((await post('types', '{"s":"x"}', { 'content-type': type })).set, { s: 'x' }, type);
    t.same((await post('types', '{"s":"x"}', { 'content-type': 'text/plain' })).set, { s: 'error' });
    t.match(await post('request', `{"s":"${'z'.repeat(LIMIT * 3)}"}`), { status: 413, set: {} });
    t.match(await post('response', '', { 'x-body': 'big' }), { status: 500, set: {} });
  });

  await t.test('responses and routes have rules', async (t) => {
    t.same((await post('response', '')).set, { len: 3 });
    t.same((await post('response', '', { 'x-body': 'bad' })).set, { len: 'error' });
    t.same((await post('response', '', { 'x-type': 'text/plain' })).set, { len: 'error' });
    t.same((await post('request', '{"s":"x"}', {}, '/own')).set, { own: 'x' });
  });

  await baton.waitForStats({
    'json_to_metadata.rq.success': 15,
    'json_to_metadata.rq.no_body': 1,
    'json_to_metadata.rq.invalid_json_body': 2,
    'json_to_metadata.rq.mismatched_content_type': 2,
    'json_to_metadata.resp.success': 1,
    'json_to_metadata.resp.invalid_json_body': 1,
    'json_to_metadata.resp.mismatched_content_type': 1,
  });
});

t.test('hostile bodies are invalid, and set no metadata of others', async (t) => {
  const { post } = await start(t, { command: undefined });
  const error = { s: 'error', n: 'error', p: 'error', deep: 'error' };
  t.same((await post('request', `${'['.repeat(200_000)}`)).set, error);
  t.match((await post('request', '{"n":" 1e999"}')).set, { n: 'missing' });
  const { set } = await post('request', '{"__proto__":{"s":"x"},"a":{"__proto__":{"b":"x"}},"n":1e999}');
  t.same(set, { s: 'missing', n: 'missing', p: 'missing', deep: 'missing', fixed: 'f' });
});
