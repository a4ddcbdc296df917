// Modules of the proxy-wasm ABI change, hold and answer requests and responses, as in Envoy.

import type { Test } from 'tap';
import { besideEnvoy, type ProxyProgram } from '../../harness/envoy.js';
import { type Config, ROUTER_FILTER, startUpstream, staticCluster, tempDir, waitFor } from '../../harness/index.js';
import { callback, says, saysNumber, type WasmModuleOptions, wasmFile, wasmPairs } from '../../harness/wasm-module.js';
import { managerOf, routeTo, startProxy } from '../proxy.js';

const TYPE = 'type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm';

interface Module {
  readonly body: string;
  readonly options?: WasmModuleOptions;
  readonly plugin?: Config;
  readonly vm?: Config;
}

const requestHeaders = (body: string) => callback('request_headers', 3, body);
const responseHeaders = (body: string) => callback('response_headers', 3, body);
const add = (map: number, name: string, value: string) =>
  `(drop (call $add_header_map_value (i32.const ${map}) $S("${name}") $S("${value}")))`;

/** Starts a proxy with a listener for each module; the host answers with what it has got. */
async function proxyWith(t: Test, program: ProxyProgram, modules: Record<string, Module>) {
  const upstream = await startUpstream(t, (request, answer) => {
    let body = '';
    request.setEncoding('latin1').on('data', (piece: string) => (body += piece));
    request.on('end', () => {
      answer.setHeader('x-host', 'yes');
      answer.end(JSON.stringify({ method: request.method, url: request.url, headers: request.headers, body }));
    });
  });
  const folder = tempDir(t);
  const listeners: Record<string, Config> = {};
  for (const [name, { body, options, plugin = {}, vm = {} }] of Object.entries(modules)) {
    const filename = wasmFile(folder, body, options);
    const config = {
      ...{ name, root_id: 'root' },
      vm_config: { vm_id: name, runtime: 'envoy.wasm.runtime.v8', code: { local: { filename } }, ...vm },
      ...plugin,
    };
    const filter = { name: 'wasm', typed_config: { '@type': TYPE, config } };
    const routes = [routeTo({ path: '/other' }, 'other'), routeTo({ prefix: '/' }, 'host')];
    listeners[name] = managerOf(routes, { http_filters: [filter, ROUTER_FILTER] });
  }
  return startProxy(t, {
    ...program,
    args: ['-l', 'info', '--concurrency', '1'],
    clusters: [staticCluster('host', upstream.port), staticCluster('other', upstream.port)],
    listeners,
  });
}

const received = (answer: { readonly body: string }) =>
  JSON.parse(answer.body) as { method: string; url: string; headers: Record<string, string>; body: string };

besideEnvoy('modules change requests and responses', async (t, program) => {
  const { on } = await proxyWith(t, program, {
    adds: {
      body:
        requestHeaders(`${add(0, 'X-Added', 'one')} (i32.const 0)`) +
        responseHeaders(
          `(drop (call $replace_header_map_value (i32.const 2) $S("x-host") $S("changed")))
           (drop (call $replace_header_map_value (i32.const 2) $S(":status") $S("299"))) (i32.const 0)`,
        ),
    },
    rewrites: {
      body: requestHeaders(
        `(drop (call $replace_header_map_value (i32.const 0) $S(":path") $S("/changed?q")))
         (drop (call $replace_header_map_value (i32.const 0) $S(":method") $S("PUT")))
         (drop (call $replace_header_map_value (i32.const 0) $S(":authority") $S("other.example")))
         (drop (call $remove_header_map_value (i32.const 0) $S("x-gone"))) (i32.const 0)`,
      ),
    },
    old: {
      body:
        callback('request_headers', 2, `${add(0, 'x-old', 'yes')} (i32.const 0)`) +
        callback('response_headers', 2, `${add(2, 'x-old', 'yes')} (i32.const 0)`),
      options: { abi: '0_1_0' },
    },
  });
  const added = await on('adds', '/');
  t.match(added, { status: 299, headers: { 'x-host': 'changed' } });
  t.equal(received(added).headers['x-added'], 'one');
  const rewritten = received(await on('rewrites', '/', { headers: { 'x-gone': '1' } }));
  t.match(rewritten, { method: 'PUT', url: '/changed?q', headers: { host: 'other.example' } });
  t.notOk('x-gone' in rewritten.headers);
  const old = await on('old', '/');
  t.equal(received(old).headers['x-old'], 'yes');
  t.equal(old.headers['x-old'], 'yes');
});

const LOCAL = wasmPairs('x-a', 'b', 'X-Upper', 'four', 'content-type', 'text/html');

besideEnvoy('modules answer requests', async (t, program) => {
  const respond = (status: number, body: string, pairs: string) =>
    `(drop (call $send_local_response (i32.const ${status}) $S("my details") $S("${body}") ${pairs} (i32.const -1)))`;
  const none = '(i32.const 0) (i32.const 0)';
  const { on } = await proxyWith(t, program, {
    denies: {
      body:
        requestHeaders(`${respond(403, 'denied', `(i32.const 5000) (i32.const ${LOCAL.length})`)} (i32.const 0)`) +
        `(data (i32.const 5000) "${LOCAL.data}")`,
    },
    late: { body: responseHeaders(`${respond(418, 'tea', none)} (i32.const 0)`) },
    body: { body: callback('request_body', 3, `${respond(413, 'big', none)} (i32.const 1)`) },
    closes: { body: requestHeaders('(drop (call $close_stream (i32.const 0))) (i32.const 1)') },
  });
  t.match(await on('denies', '/'), {
    status: 403,
    body: 'denied',
    headers: { 'x-a': 'b', 'x-upper': 'four', 'content-type': 'text/html', 'content-length': '6' },
  });
  const grpc = await on('denies', '/', { headers: { 'content-type': 'application/grpc' } });
  t.match(grpc, { status: 200, headers: { 'grpc-status': '7' } });
  t.match(await on('late', '/'), { status: 418, body: 'tea' });
  t.match(await on('body', '/', { method: 'POST', body: 'hello' }), { status: 413, body: 'big' });
  await t.rejects(on('closes', '/'));
});

besideEnvoy('modules see, hold and replace bodies', async (t, program) => {
  const replaces = (map: number) =>
    `(if (local.get 2) (then
       (drop (call $get_buffer_status (i32.const ${map}) (i32.const 820) (i32.const 824)))
       ${saysNumber('(i32.load (i32.const 820))')}
       (drop (call $set_buffer_bytes (i32.const ${map}) (i32.const 0) (i32.const 1000000) $S("replaced")))
       (return (i32.const 0)))) (i32.const 1)`;
  const { baton, on } = await proxyWith(t, program, {
    request: {
      body:
        requestHeaders('(drop (call $remove_header_map_value (i32.const 0) $S("content-length"))) (i32.const 0)') +
        callback('request_body', 3, replaces(0)),
    },
    response: {
      body:
        responseHeaders('(drop (call $remove_header_map_value (i32.const 2) $S("content-length"))) (i32.const 0)') +
        callback('response_body', 3, replaces(1)),
    },
    frames: {
      body:
        responseHeaders('(drop (call $remove_header_map_value (i32.const 2) $S("content-length"))) (i32.const 0)') +
        callback(
          'response_body',
          3,
          `(if (local.get 1) (then
             (drop (call $set_buffer_bytes (i32.const 1) (i32.const 0) (i32.const 0) $S("<")))
             (drop (call $set_buffer_bytes (i32.const 1) (i32.const 1000000) (i32.const 0) $S(">"))))) (i32.const 0)`,
        ),
    },
  });
  const long = 'x'.repeat(70_000);
  t.equal(received(await on('request', '/', { method: 'POST', body: long })).body, 'replaced');
  t.match(baton.stderr, /wasm log request root request: 70000\n/);
  t.equal((await on('response', '/')).body, 'replaced');
  t.match((await on('frames', '/')).body, /^<\{.*\}>$/);
});

besideEnvoy('the course of a stream has the same calls in the same order', async (t, program) => {
  const logs = (name: string, parameters: number) => callback(name, parameters, `${says(name)} (i32.const 0)`);
  const plain = (name: string, parameters: number) =>
    `(func (export "proxy_on_${name}") (param${' i32'.repeat(parameters)}) ${says(name)})`;
  const { baton, get } = await proxyWith(t, program, {
    p: {
      body: [
        `(func (export "_initialize") ${says('initialize')})`,
        callback('vm_start', 2, `${says('vm_start')} (i32.const 1)`),
        callback('configure', 2, `${says('configure')} (i32.const 1)`),
        plain('context_create', 2),
        ...[logs('request_headers', 3), logs('response_headers', 3), plain('log', 1), plain('delete', 1)],
        callback('done', 1, `${says('done')} (i32.const 1)`),
      ].join(''),
    },
  });
  await get('/');
  await waitFor(() => baton.stderr.includes('wasm log p root p: delete'), { what: 'the end of the stream' });
  const lines = [...baton.stderr.matchAll(/wasm log(.*?): (\w+)/g)].map(([, prefix, text]) => `${prefix}:${text}`);
  t.same(
    lines.filter((line) => line.startsWith(' p')),
    ['context_create', 'request_headers', 'response_headers', 'log', 'done', 'delete'].map(
      (text) => ` p root p:${text}`,
    ),
  );
  t.same(lines.slice(lines.lastIndexOf(':initialize')).slice(0, 4), [
    ':initialize',
    ' root p:context_create',
    ' root p:vm_start',
    ' root p:configure',
  ]);
});

besideEnvoy('a module that traps ends according to its policy', async (t, program) => {
  const traps = requestHeaders('(unreachable)');
  const { baton, on } = await proxyWith(t, program, {
    closed: { body: traps },
    open: { body: traps, plugin: { failure_policy: 'FAIL_OPEN' } },
    later: { body: responseHeaders('(unreachable)') },
    deep: { body: `${requestHeaders('(call $deep) (i32.const 0)')} (func $deep (call $deep))` },
    reloads: {
      // Traps once for each VM that has not seen a request.
      body: requestHeaders(
        `(if (i32.eqz (call $get_header_map_value (i32.const 0) $S("x-trap") (i32.const 800) (i32.const 804)))
           (then (unreachable))) (i32.const 0)`,
      ),
      plugin: { failure_policy: 'FAIL_RELOAD', reload_config: { backoff: { base_interval: '0.1s' } } },
    },
  });
  for (const name of ['closed', 'later', 'deep']) {
    t.match(await on(name, '/'), { status: 503, body: '' }, name);
    t.match(await on(name, '/'), { status: 503, body: '' }, `${name} again`);
  }
  t.match(await on('open', '/'), { status: 503, body: '' });
  t.match(await on('open', '/'), { status: 200 });
  t.match(baton.stderr, /Function: proxy_on_request_headers failed: Uncaught RuntimeError: unreachable/);
  t.match(
    baton.stderr,
    /Function: proxy_on_request_headers failed: Uncaught RangeError: Maximum call stack size exceeded/,
  );
  t.match(await on('reloads', '/', { headers: { 'x-trap': '1' } }), { status: 503 });
  let status = 0;
  for (let i = 0; i < 200 && status !== 200; i++) ({ status } = await on('reloads', '/'));
  await baton.waitForStats({ 'wasm.reloads.vm_reload_success': 1 });
});
