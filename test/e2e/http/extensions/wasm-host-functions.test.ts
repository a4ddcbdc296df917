// What modules use of the host besides the messages: calls, ticks, stats, shared data and queues, properties. As in Envoy.

import t, { type Test } from 'tap';
import { besideEnvoy, type ProxyProgram } from '../../harness/envoy.js';
import {
  type BatonProcess,
  type Config,
  ROUTER_FILTER,
  startUpstream,
  staticCluster,
  tempDir,
  waitFor,
} from '../../harness/index.js';
import { callback, says, saysNumber, wasmFile, wasmPairs } from '../../harness/wasm-module.js';
import { managerOf, routeTo, startProxy } from '../proxy.js';

const TYPE = 'type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm';
const FAULT = 'type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault';

interface Module {
  readonly body: string;
  readonly plugin?: Config;
  /** Filters before the module. */
  readonly before?: Config[];
}

const requestHeaders = (body: string) => callback('request_headers', 3, body);
const responseHeaders = (body: string) => callback('response_headers', 3, body);
const plain = (name: string, parameters: number, body: string) =>
  `(func (export "proxy_on_${name}") (param${' i32'.repeat(parameters)}) ${body})`;

/** Starts a proxy with a listener for each module. The host's answers are `host PATH`. */
async function proxyWith(t: Test, program: ProxyProgram, modules: Record<string, Module>) {
  const upstream = await startUpstream(t, (request, answer) => {
    answer.setHeader('x-host', 'yes');
    answer.end(`host ${request.url}`);
  });
  const folder = tempDir(t);
  const listeners: Record<string, Config> = {};
  for (const [name, { before = [], body, plugin = {} }] of Object.entries(modules)) {
    const code = { local: { filename: wasmFile(folder, body) } };
    const config = {
      ...{ name, root_id: 'root', vm_config: { vm_id: name, runtime: 'envoy.wasm.runtime.v8', code } },
      ...plugin,
    };
    const filter = { name: 'wasm', typed_config: { '@type': TYPE, config } };
    const route = { ...routeTo({ prefix: '/' }, 'host'), name: 'my_route' };
    listeners[name] = managerOf([route], { http_filters: [...before, filter, ROUTER_FILTER] });
  }
  return startProxy(t, {
    ...program,
    args: ['-l', 'info', '--concurrency', '1'],
    clusters: [staticCluster('host', upstream.port)],
    listeners,
  });
}

/** The texts that a stream of the plugin, or its root, has logged. */
const logged = (baton: BatonProcess, prefix: string) =>
  [...baton.stderr.matchAll(/wasm log(.*?): (.*)/g)].filter(([, of]) => of === prefix).map(([, , text]) => text);

/** Waits for these texts, and no others. */
async function hasLogged(t: Test, baton: BatonProcess, prefix: string, texts: readonly string[]): Promise<void> {
  await waitFor(() => logged(baton, prefix).length >= texts.length, { what: `the log of${prefix}` });
  t.same(logged(baton, prefix), texts);
}

type Proxy = Awaited<ReturnType<typeof proxyWith>>;

const cases: { what: string; modules: Record<string, Module>; run: (t: Test, proxy: Proxy) => Promise<void> }[] = [];

/** Adds a case. All run with one process: their modules have different names. */
function shares(what: string, modules: Record<string, Module>, run: (t: Test, proxy: Proxy) => Promise<void>): void {
  cases.push({ what, modules, run });
}

const REQUEST = wasmPairs(':method', 'GET', ':path', '/called', ':authority', 'host', 'x-a', 'b');
const call = (cluster: string) =>
  `(call $http_call $S("${cluster}") (i32.const 5000) (i32.const ${REQUEST.length}) $S("") $S("") (i32.const 5000) (i32.const 820))`;
const STREAM = `(global $stream (mut i32) (i32.const 0)) (data (i32.const 5000) "${REQUEST.data}")`;
const REMEMBER = '(global.set $stream (local.get 0))';
const CONTINUE = `(drop (call $set_effective_context (global.get $stream))) (drop (call $continue_stream (i32.const 0)))`;

shares(
  'a module holds a request while it calls a host',
  {
    calls: {
      body:
        STREAM +
        requestHeaders(`${REMEMBER} ${saysNumber(call('host'))} (i32.const 1)`) +
        plain(
          'http_call_response',
          5,
          `${saysNumber('(i32.eqz (local.get 2))')} ${saysNumber('(local.get 3)')}
           (drop (call $get_header_map_value (i32.const 6) $S(":status") (i32.const 800) (i32.const 804))) (call $out)
           (drop (call $get_header_map_value (i32.const 6) $S("x-host") (i32.const 800) (i32.const 804))) (call $out)
           (drop (call $get_buffer_bytes (i32.const 4) (i32.const 0) (i32.const 100) (i32.const 800) (i32.const 804))) (call $out)
           ${CONTINUE}`,
        ),
    },
    unknown: { body: STREAM + requestHeaders(`${saysNumber(call('nowhere'))} (i32.const 0)`) },
  },
  async (t, { baton, on }) => {
    t.match(await on('calls', '/own'), { status: 200, body: 'host /own' });
    await hasLogged(t, baton, ' calls root calls', ['0']);
    await hasLogged(t, baton, ' root calls', ['0', '12', '200', 'yes', 'host /called']);
    t.match(await on('unknown', '/'), { status: 200 });
    await hasLogged(t, baton, ' unknown root unknown', ['2']);
  },
);

// In Envoy it waits for its timeout.
t.test('a request that is held by a module that traps ends according to its policy', async (t) => {
  const body =
    STREAM + requestHeaders(`(drop ${call('host')}) (i32.const 1)`) + plain('http_call_response', 5, '(unreachable)');
  const modules = { closed: { body }, open: { body, plugin: { failure_policy: 'FAIL_OPEN' } } };
  const { on } = await proxyWith(t, { command: undefined }, modules);
  t.match(await on('closed', '/'), { status: 503 });
  t.match(await on('open', '/a'), { status: 200, body: 'host /a' });
});

{
  const tick = '(drop (call $set_tick_period_milliseconds (i32.const 10)))';
  shares(
    'a module ticks',
    {
      ticks: { body: callback('configure', 2, `${tick} (i32.const 1)`) + plain('tick', 1, says('a tick')) },
    },
    async (_t, { baton }) => {
      await waitFor(() => logged(baton, ' root ticks').length >= 3, { what: 'three ticks' });
    },
  );
}

{
  const id = '(i32.load (i32.const 820))';
  const define = (type: number, name: string) =>
    `(drop (call $define_metric (i32.const ${type}) $S("${name}") (i32.const 820)))`;
  const shown = `(drop (call $get_metric ${id} (i32.const 832))) ${saysNumber('(i32.load (i32.const 832))')}`;
  shares(
    'a module counts',
    {
      counts: {
        body: requestHeaders(
          `${define(0, 'my_count')} ${saysNumber(`(call $increment_metric ${id} (i64.const 2))`)} ${shown}
         ${saysNumber(`(call $increment_metric ${id} (i64.const -1))`)}
         ${define(1, 'my_gauge')} (drop (call $record_metric ${id} (i64.const 7)))
         (drop (call $increment_metric ${id} (i64.const -3))) ${shown}
         ${define(2, 'my_histogram')} ${saysNumber(`(call $record_metric ${id} (i64.const 5))`)}
         ${saysNumber('(call $increment_metric (i32.const 4000) (i64.const 1))')} (i32.const 0)`,
        ),
      },
    },
    async (t, { baton, on }) => {
      await on('counts', '/');
      await on('counts', '/');
      await hasLogged(t, baton, ' counts root counts', ['0', '2', '2', '4', '0', '1', '0', '4', '2', '4', '0', '1']);
      await baton.waitForStats({ 'wasmcustom.my_count': 4, 'wasmcustom.my_gauge': 4 });
    },
  );
}

{
  const set = (value: string, cas: string) => `(call $set_shared_data $S("key") $S("${value}") ${cas})`;
  const read = `(drop (call $get_shared_data $S("key") (i32.const 800) (i32.const 804) (i32.const 808))) (call $out)`;
  shares(
    'plugins share data and queues',
    {
      data: {
        body: requestHeaders(
          `${saysNumber('(call $get_shared_data $S("other") (i32.const 800) (i32.const 804) (i32.const 808))')}
         ${saysNumber(set('one', '(i32.const 0)'))} ${read}
         ${saysNumber(set('two', '(i32.load (i32.const 808))'))}
         ${saysNumber(set('three', '(i32.load (i32.const 808))'))} ${read} (i32.const 0)`,
        ),
      },
      queues: {
        body:
          callback('configure', 2, '(drop (call $register_shared_queue $S("queue") (i32.const 820))) (i32.const 1)') +
          requestHeaders(
            `${saysNumber('(call $resolve_shared_queue $S("queues") $S("none") (i32.const 824))')}
           (drop (call $resolve_shared_queue $S("queues") $S("queue") (i32.const 824)))
           ${saysNumber('(call $enqueue_shared_queue (i32.load (i32.const 824)) $S("an item"))')}
           ${saysNumber('(call $enqueue_shared_queue (i32.const 9999) $S("an item"))')} (i32.const 0)`,
          ) +
          plain(
            'queue_ready',
            2,
            `(drop (call $dequeue_shared_queue (local.get 1) (i32.const 800) (i32.const 804))) (call $out)
           ${saysNumber('(call $dequeue_shared_queue (local.get 1) (i32.const 800) (i32.const 804))')}`,
          ),
      },
    },
    async (t, { baton, on }) => {
      await on('data', '/');
      await hasLogged(t, baton, ' data root data', ['1', '0', 'one', '0', '8', 'two']);
      await on('queues', '/');
      await hasLogged(t, baton, ' queues root queues', ['1', '0', '1']);
      await hasLogged(t, baton, ' root queues', ['an item', '7']);
    },
  );
}

/** Logs a result and a text, or a number. */
const property = (path: string) =>
  `(i32.store (i32.const 804) (i32.const 0)) ${saysNumber(`(call $get_property $S("${path}") (i32.const 800) (i32.const 804))`)} (call $out)`;
const number = (path: string) =>
  `(i32.store (i32.const 800) (i32.const 900)) (drop (call $get_property $S("${path}") (i32.const 800) (i32.const 804)))
   ${saysNumber('(i32.load (i32.load (i32.const 800)))')} ${saysNumber('(i32.load (i32.const 804))')}`;
const found = (...texts: string[]) => texts.flatMap((text) => ['0', text]);

{
  const paths = ['path', 'url_path', 'query', 'method', 'host', 'scheme', 'protocol', 'useragent', 'headers\\0x-id'];
  shares(
    'a module reads properties, and sets its own',
    {
      p: {
        body:
          requestHeaders(
            `${paths.map((path) => property(`request\\0${path}`)).join('')}
           ${['plugin_name', 'plugin_root_id', 'plugin_vm_id'].map(property).join('')}
           ${['nothing', 'request\\0nothing', 'request', 'response\\0code', 'metadata\\0filter_metadata\\0a\\0b'].map(property).join('')}
           ${saysNumber('(call $set_property $S("mine") $S("my value"))')} ${property('mine')}
           ${number('request\\0size')} ${number('connection\\0mtls')} (i32.const 0)`,
          ) +
          responseHeaders(
            `${says('response')}
           ${['mine', 'response\\0headers\\0x-host', 'cluster_name', 'xds\\0cluster_name', 'xds\\0route_name'].map(property).join('')}
           ${number('response\\0code')} (i32.const 0)`,
          ),
      },
    },
    async (t, { baton, on }) => {
      await on('p', '/a/b?c=d', { headers: { host: 'my.host', 'user-agent': 'agent', 'x-id': '7' } });
      await hasLogged(t, baton, ' p root p', [
        ...found('/a/b?c=d', '/a/b', 'c=d', 'GET', 'my.host', 'http', 'HTTP/1.1', 'agent', '7', 'p', 'root', 'p'),
        ...['1', '', '1', '', '3', '', '1', '', '1', ''],
        ...['0', '0', 'my value', '0', '8', '0', '1'],
        'response',
        ...found('my value', 'yes'),
        ...['1', ''],
        ...found('host', 'my_route'),
        ...['200', '8'],
      ]);
    },
  );
}

{
  const length = `(drop (call $get_buffer_status (i32.const 7) (i32.const 820) (i32.const 824))) ${saysNumber('(i32.load (i32.const 820))')}`;
  const first = `(drop (call $get_buffer_bytes (i32.const 7) (i32.const 0) (i32.const 1) (i32.const 800) (i32.const 804)))
    ${saysNumber('(i32.load8_u (i32.load (i32.const 800)))')}`;
  const body = callback('configure', 2, `${length} ${first} (i32.const 1)`);
  const type = (name: string) => ({ '@type': `type.googleapis.com/google.protobuf.${name}` });
  shares(
    'a module gets its configuration',
    {
      text: { body, plugin: { configuration: { ...type('StringValue'), value: 'text' } } },
      bytes: { body, plugin: { configuration: { ...type('BytesValue'), value: 'AAEC' } } },
      struct: { body, plugin: { configuration: { ...type('Struct'), value: { a: 1, b: ['c', null, true] } } } },
    },
    async (t, { baton }) => {
      t.same(logged(baton, ' root text').slice(-2), ['4', '116']);
      t.same(logged(baton, ' root bytes').slice(-2), ['3', '0']);
      t.same(logged(baton, ' root struct').slice(-2), ['38', '10']);
    },
  );
}

{
  const abort = { http_status: 418, percentage: { numerator: 100 } };
  const traps = ['response_headers', 'response_body'].map((name) => callback(name, 3, '(unreachable)')).join('');
  shares(
    'a module does not see the answer of a filter before it',
    {
      fault: { body: traps, before: [{ name: 'fault', typed_config: { '@type': FAULT, abort } }] },
    },
    async (t, { on }) => {
      t.match(await on('fault', '/'), { status: 418, body: 'fault filter abort' });
      t.match(await on('fault', '/'), { status: 418, body: 'fault filter abort' }, 'the module has not trapped');
    },
  );
}

shares(
  'a value that cannot be sent fails its request, not the module',
  {
    invalid: {
      // A call that does not return Ok ends modules of some SDKs.
      body: requestHeaders(
        `(if (i32.eqz (call $get_header_map_value (i32.const 0) $S("x-bad") (i32.const 800) (i32.const 804)))
           (then (if (call $add_header_map_value (i32.const 0) $S("x-added") $S("a\\nb: c")) (then (unreachable)))))
         (i32.const 0)`,
      ),
    },
  },
  async (t, { on }) => {
    t.match(await on('invalid', '/', { headers: { 'x-bad': '1' } }), { status: 503 });
    t.match(await on('invalid', '/'), { status: 200, body: 'host /' });
  },
);

{
  const respond = (status: number) =>
    `(drop (call $send_local_response (i32.const ${status}) $S("details") $S("${status}") (i32.const 0) (i32.const 0) (i32.const -1)))`;
  shares(
    'the first of several answers is sent',
    {
      twice: { body: requestHeaders(`${respond(401)} ${respond(402)} (i32.const 1)`) },
    },
    async (t, { on }) => {
      t.match(await on('twice', '/'), { status: 401, body: '401' });
    },
  );
}

besideEnvoy('modules use the host as in Envoy', async (t, program) => {
  const proxy = await proxyWith(t, program, Object.assign({}, ...cases.map(({ modules }) => modules)));
  for (const { what, run } of cases) await t.test(what, (t) => run(t, proxy));
});
