// ext_proc: what a processor is asked about heads, and what its answers change.

import { besideEnvoy } from '../../harness/envoy.js';
import { type Config, connectRaw, rawExchange, waitFor } from '../../harness/index.js';
import { grpcService, type ProcessedProxy, type Script, startProcessedProxy } from './processed-proxy.js';
import { fieldOf, pass } from './processor.js';

/** A HeaderValueOption. */
function field(key: string, value: string, more: Config = {}): Config {
  return { header: { key, raw_value: base64(value) }, ...more };
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

/** Answers the question about the head of the request with a mutation, and lets the rest pass. */
function changing(mutation: Config, more: Config = {}): Script {
  return (kind, call) =>
    call.send(pass(kind, kind === 'request_headers' ? { header_mutation: mutation, ...more } : undefined));
}

function changingResponse(response: Config): Script {
  return (kind, call) => call.send(pass(kind, kind === 'response_headers' ? response : undefined));
}

function immediate(response: Config): Script {
  return (_kind, call) => call.send({ immediate_response: response });
}

const SCRIPTS: Readonly<Record<string, Script>> = {
  '/changed': changing({
    set_headers: [
      field('x-new', 'n'),
      field('x-a', 'over'),
      field('x-b', 'more', { append: true }),
      { header: { key: 'x-text', value: 'text' } },
    ],
    remove_headers: ['X-R', 'x-envoy-thing'],
  }),
  '/moved': changing({ set_headers: [field(':path', '/elsewhere')] }),
  '/refused-fields': changing({
    set_headers: [field(':method', 'PUT'), field('host', 'h'), field(':scheme', 'https'), field('x-envoy-a', '1')],
    remove_headers: [':method', ':path', 'host'],
  }),
  '/bad-name': changing({ set_headers: [field('x bad', '1')] }),
  '/bad-value': changing({ set_headers: [field('x-bad', 'a\nb')] }),
  '/bad-removal': changing({ remove_headers: ['x bad'] }),
  '/many': changing({ set_headers: Array.from({ length: 101 }, (_, index) => field(`x-${index}`, '1')) }),
  '/big': changing({ set_headers: [field('x-big', 'b'.repeat(70_000))] }),
  '/routed': changing({ set_headers: [field('x-route', '1')] }, { clear_route_cache: true }),
  '/not-routed': (kind, call) => call.send(pass(kind, { clear_route_cache: true })),
  '/response': changingResponse({
    header_mutation: {
      set_headers: [field(':status', '201'), field('x-host', 'changed'), field('x-out', 'o')],
      remove_headers: ['x-gone', ':status'],
    },
  }),
  '/replaced-response': changingResponse({ status: 'CONTINUE_AND_REPLACE', body_mutation: { body: base64('fresh') } }),
  '/replaced': changing(
    { set_headers: [field(':method', 'PUT')] },
    { status: 'CONTINUE_AND_REPLACE', body_mutation: { body: base64('fresh') } },
  ),
  '/denied': immediate({
    status: { code: 'Forbidden' },
    headers: { set_headers: [field('x-why', 'w'), field('content-type', 'text/html')] },
    body: base64('<b>no</b>'),
    details: 'no  reason\u001b[1m',
  }),
  '/denied-grpc': immediate({ status: { code: 503 }, grpc_status: { status: 9 }, body: base64('why') }),
  '/denied-oddly': immediate({ status: { code: 100 }, headers: { set_headers: [field('x bad', '1')] } }),
  '/late-denial': (kind, call) =>
    call.send(kind === 'response_headers' ? { immediate_response: { status: { code: 418 } } } : pass(kind)),
  '/wrong': (_kind, call) => call.send(pass('response_headers')),
  '/empty': (_kind, call) => call.send({}),
  '/garbage': (_kind, call) => call.sendBytes(Buffer.from('ffffffff', 'hex')),
  '/closing': (_kind, call) => call.end(),
  '/failing': (_kind, call) => call.end(13),
  '/silent': () => {},
  '/patient': (kind, call) => {
    call.send({ override_message_timeout: '20s' });
    call.send({ override_message_timeout: '20s' });
    call.send(pass(kind));
  },
  '/endless': (kind, call) => {
    call.send({ override_message_timeout: '60s' });
    call.send(pass(kind));
  },
  '/metadata': (kind, call) =>
    call.send({ ...pass(kind), dynamic_metadata: { mine: { user: 'me' }, other: { a: 1 } } }),
};

const FORMAT =
  '%RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS% %DYNAMIC_METADATA(mine:user)% %DYNAMIC_METADATA(other)% ' +
  '%FILTER_STATE(envoy.filters.http.ext_proc:FIELD:request_header_call_status)%\n';

const FILTERS: Readonly<Record<string, Config>> = {
  main: { max_message_timeout: '30s' },
  open: { failure_mode_allow: true },
  hasty: { message_timeout: '0.1s' },
  hastyopen: { message_timeout: '0.1s', failure_mode_allow: true },
  strict: { status_on_error: { code: 'BadGateway' }, mutation_rules: { disallow_is_error: true } },
  routing: {
    mutation_rules: { allow_all_routing: true, allow_envoy: true },
    disable_immediate_response: true,
    route_cache_action: 'RETAIN',
  },
  clearing: { route_cache_action: 'CLEAR', stat_prefix: 'own' },
  request: {
    processing_mode: { response_header_mode: 'SKIP' },
    forward_rules: {
      allowed_headers: { patterns: [{ prefix: 'x-' }, { exact: ':path' }] },
      disallowed_headers: { patterns: [{ exact: 'x-r' }] },
    },
  },
  metadata: {
    metadata_options: { forwarding_namespaces: { untyped: ['mine'] }, receiving_namespaces: { untyped: ['mine'] } },
  },
  nowhere: { grpc_service: grpcService({ envoy_grpc: { cluster_name: 'nowhere' } }) },
};

const ROUTES: readonly Config[] = [
  { match: { prefix: '/', headers: [{ name: 'x-route', present_match: true }] }, direct_response: { status: 202 } },
  {
    match: { prefix: '/free' },
    route: { cluster: 'host' },
    typed_per_filter_config: {
      'envoy.filters.http.ext_proc': {
        '@type': 'type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExtProcPerRoute',
        disabled: true,
      },
    },
  },
  {
    match: { prefix: '/overridden' },
    route: { cluster: 'host' },
    typed_per_filter_config: {
      'envoy.filters.http.ext_proc': {
        '@type': 'type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExtProcPerRoute',
        overrides: {
          processing_mode: { request_header_mode: 'SKIP' },
          grpc_initial_metadata: [{ key: 'x-path', value: '/own' }],
          failure_mode_allow: true,
        },
      },
    },
  },
];

/** Sends a request to a listener. Returns the status, the whole answer and the log line. */
class Client {
  #lines = 0;

  constructor(readonly proxy: ProcessedProxy) {}

  async get(name: string, path: string, more = ''): Promise<{ status: number; text: string; line: string }> {
    const head = `GET ${path} HTTP/1.1\r\nhost: a.test\r\nx-a: 1\r\nx-b: 1\r\nx-r: 1\r\nx-envoy-thing: 2\r\n${more}`;
    const { text } = await rawExchange(await this.proxy.port(name), `${head}connection: close\r\n\r\n`);
    const lines = await this.proxy.lines(++this.#lines);
    return { status: Number(text.slice(9, 12)), text, line: lines[this.#lines - 1]! };
  }
}

besideEnvoy('a processor is asked about heads and changes them', async (t, program) => {
  const clusters = [{ name: 'nowhere', type: 'STATIC', connect_timeout: '1s' }];
  const proxy = await startProcessedProxy(t, program, {
    filters: FILTERS,
    scripts: SCRIPTS,
    routes: ROUTES,
    logFormat: FORMAT,
    clusters,
  });
  const client = new Client(proxy);
  const { baton } = proxy;

  await t.test('it receives the fields of the head', async (t) => {
    await client.get('main', '/any?q');
    const [call] = proxy.callsOf('/any?q');
    t.match(call!.head, {
      ':path': '/envoy.service.ext_proc.v3.ExternalProcessor/Process',
      'content-type': 'application/grpc',
      'x-envoy-internal': 'true',
    });
    const [request, response] = call!.questions;
    t.same(call!.summary, ['request_headers;end', 'response_headers']);
    const fields = { ':method': 'GET', ':path': '/any?q', ':authority': 'a.test', ':scheme': 'http', 'x-a': '1' };
    for (const [name, value] of Object.entries(fields)) t.equal(fieldOf(request!.request_headers, name), value, name);
    t.equal(request!.request_headers!.headers!.headers!.find(({ key }) => key === 'x-a')!.value ?? '', '');
    t.same(request!.protocol_config, {});
    t.equal(fieldOf(response!.response_headers, ':status'), '200');
    t.equal(fieldOf(response!.response_headers, 'x-host'), 'own');
    t.equal(response!.protocol_config, undefined);
  });

  await t.test('its answer changes the request', async (t) => {
    const { text } = await client.get('main', '/changed');
    t.match(text, /"x-new":"n"/);
    t.match(text, /"x-a":"over"/);
    t.match(text, /"x-b":"1, more"/);
    t.match(text, /"x-text":""/, 'only raw_value counts');
    t.notMatch(text, /"x-r"/);
    t.match(text, /"x-envoy-thing"/, 'a field of the rules stays');
    t.match((await client.get('main', '/moved')).text, /"url":"\/elsewhere"/);
    const refused = await client.get('main', '/refused-fields');
    t.match(refused.text, /"method":"GET","url":"\/refused-fields","headers":\{"host":"a.test"/);
    await baton.waitForStats({ 'http.main.ext_proc.rejected_header_mutations': 8 });
  });

  await t.test('invalid changes fail the request', async (t) => {
    const cases = {
      '/bad-name': 'header_mutation_set_contains_invalid_character',
      '/bad-value': 'header_mutation_set_contains_invalid_character',
      '/bad-removal': 'header_mutation_remove_contains_invalid_character',
      '/many': 'header_mutation_operation_count_exceeds_limit',
      '/big': 'header_mutation_result_exceeds_limit',
    };
    for (const [path, details] of Object.entries(cases)) {
      t.equal((await client.get('main', path)).line, `500 - ${details} - - 3`, path);
      t.equal((await client.get('open', path)).status, 500, `${path}: even if failures are allowed`);
    }
    t.equal((await client.get('strict', '/bad-name')).status, 502);
    const { line } = await client.get('strict', '/refused-fields');
    t.equal(line, '502 - header_mutation_remove_headers_failed - - 3');
  });

  await t.test('rules allow the fields that decide about the route', async (t) => {
    const { text } = await client.get('routing', '/refused-fields');
    t.match(text, /"method":"PUT","url":"\/refused-fields","headers":\{[^}]*"host":"h"/);
    t.match(text, /"x-envoy-a":"1"/);
  });

  await t.test('the route is chosen again', async (t) => {
    t.equal((await client.get('main', '/routed')).status, 202);
    t.equal((await client.get('main', '/not-routed')).status, 200);
    t.equal((await client.get('routing', '/routed')).status, 200, 'RETAIN');
    t.equal((await client.get('clearing', '/routed')).status, 202, 'CLEAR');
    await baton.waitForStats({
      'http.main.ext_proc.clear_route_cache_ignored': 1,
      'http.routing.ext_proc.clear_route_cache_disabled': 1,
      'http.clearing.ext_proc.own.stream_msgs_received': 2,
    });
  });

  await t.test('its answer changes the response', async (t) => {
    const { status, text } = await client.get('main', '/response');
    t.equal(status, 201);
    t.match(text, /x-host: changed\r\n/i);
    t.match(text, /x-out: o\r\n/i);
  });

  await t.test('it replaces messages', async (t) => {
    t.match((await client.get('main', '/replaced')).text, /"method":"PUT".*"body":"fresh","length":5/);
    t.match((await client.get('main', '/replaced-response')).text, /\r\nfresh\r\n/);
  });

  await t.test('it answers clients', async (t) => {
    const denied = await client.get('main', '/denied');
    t.match(denied.text, /^HTTP\/1.1 403 .*x-why: w\r\n.*text\/html.*\r\n\r\n<b>no<\/b>$/is);
    // Envoy writes the control character.
    const isEnvoy = program.command !== undefined;
    t.match(denied.line, isEnvoy ? /^403 - no__reason.*1m - - 0$/s : /^403 - no__reason\\u001b\[1m - - 0$/);
    const grpc = await client.get('main', '/denied-grpc', 'content-type: application/grpc\r\n');
    t.match(grpc.text, /^HTTP\/1.1 200 .*grpc-status: 9\r\n.*grpc-message: why\r\n/is);
    t.equal((await client.get('main', '/denied-oddly')).status, 200);
    t.equal((await client.get('main', '/late-denial')).status, 418);
    t.match((await client.get('routing', '/denied')).line, /^500 - unhandled_immediate_response_due_to_config/);
  });

  await t.test('wrong answers and failures have their details', async (t) => {
    const cases: Record<string, readonly [string, number]> = {
      '/wrong': ['500 - spurious_message - - 9', 200],
      '/empty': ['500 - unhandled_message - - 9', 200],
      '/garbage': ['500 - ext_proc_error_gRPC_error_13{via_upstream} - - 13', 200],
      '/failing': ['500 - ext_proc_error_gRPC_error_13{via_upstream} - - 13', 200],
      '/closing': ['200 - via_upstream - - 10', 200],
    };
    for (const [path, [line, whenOpen]] of Object.entries(cases)) {
      t.equal((await client.get('main', path)).line, line, path);
      t.equal((await client.get('open', path)).status, whenOpen, `${path}: if failures are allowed`);
    }
    const late = await client.get('hasty', '/silent');
    t.equal(late.line, '504 - ext_proc_error_per-message_timeout_exceeded - - 4');
    t.equal((await client.get('hastyopen', '/silent')).status, 200);
    const { line, status } = await client.get('nowhere', '/nowhere');
    t.equal(status, 500);
    t.match(line, /ext_proc_error_gRPC_error_14/);
    await baton.waitForStats({
      'http.open.ext_proc.failure_mode_allowed': 4,
      'http.open.ext_proc.spurious_msgs_received': 2,
      'http.hastyopen.ext_proc.failure_mode_allowed': 1,
      'http.hastyopen.ext_proc.message_timeouts': 1,
      'http.nowhere.ext_proc.streams_started': 0,
      'http.nowhere.ext_proc.streams_failed': 1,
    });
  });

  await t.test('it may take more time once', async (t) => {
    t.equal((await client.get('main', '/patient')).status, 200);
    t.equal((await client.get('main', '/endless')).status, 200);
    await baton.waitForStats({
      'http.main.ext_proc.override_message_timeout_received': 2,
      'http.main.ext_proc.override_message_timeout_ignored': 4,
    });
  });

  await t.test('the mode and the rules decide what it receives', async (t) => {
    await client.get('request', '/few');
    const [call] = proxy.callsOf('/few');
    t.same(call!.summary, ['request_headers;end']);
    const names = call!.questions[0]!.request_headers!.headers!.headers!.map(({ key }) => key);
    t.ok(names.includes('x-a') && names.includes(':path'));
    t.notOk(names.includes('x-r') || names.includes(':method'));
    await client.get('main', '/free');
    t.same(proxy.callsOf('/free'), []);
    await client.get('main', '/overridden');
    t.same(proxy.callsOf('/own')[0]!.summary, ['response_headers']);
  });

  await t.test('it sets and receives metadata', async (t) => {
    t.equal((await client.get('metadata', '/metadata')).line, '200 - via_upstream me - 0');
    t.match(proxy.callsOf('/metadata')[0]!.questions[1]!.metadata_context, { filter_metadata: { mine: {} } });
    t.equal((await client.get('main', '/metadata')).line, '200 - via_upstream - - 0');
  });

  await t.test('a client that leaves ends the stream', async (t) => {
    const connection = await connectRaw(t, await proxy.port('main'));
    const before = proxy.callsOf('/silent').length;
    connection.write('GET /silent HTTP/1.1\r\nhost: a\r\n\r\n');
    await waitFor(() => proxy.callsOf('/silent').length > before, { what: 'the stream' });
    connection.destroy();
    await waitFor(() => proxy.callsOf('/silent').every((call) => call.isClosed), { what: 'the end of the streams' });
  });
});
