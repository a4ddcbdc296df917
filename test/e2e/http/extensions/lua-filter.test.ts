// The configuration of envoy.filters.http.lua, trailers, failures, and the limits of scripts.

import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { besideEnvoy } from '../../harness/envoy.js';
import {
  bootstrap,
  type Config,
  connectRaw,
  httpListener,
  ROUTER_FILTER,
  startBaton,
  startUpstream,
  staticCluster,
  tempDir,
  waitFor,
} from '../../harness/index.js';
import { managerOf, routeTo, startProxy } from '../proxy.js';

const NAME = 'my-lua';
const TYPE = 'type.googleapis.com/envoy.extensions.filters.http.lua.v3';

/** Options of a cluster whose hosts get and send trailers. */
const TRAILERS = {
  typed_extension_protocol_options: {
    'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
      '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
      explicit_http_config: { http_protocol_options: { enable_trailers: true } },
    },
  },
};

const marking = (text: string) =>
  `function envoy_on_response(h) h:headers():add("x-r", "${text}" .. tostring((h:filterContext():get("of")))) end`;
const source = (inline_string: string) => ({ inline_string });
const perRoute = (config: Config) => ({
  typed_per_filter_config: { [NAME]: { '@type': `${TYPE}.LuaPerRoute`, ...config } },
});

function manager(config: Config, routes: Config[]): Config {
  const filter = { name: NAME, typed_config: { '@type': `${TYPE}.Lua`, ...config } };
  return managerOf(routes, { http_filters: [filter, ROUTER_FILTER] });
}

besideEnvoy('routes choose among scripts, and disable them', async (t, program) => {
  const upstream = await startUpstream(t, (_message, answer) => void answer.end('host'));
  const folder = tempDir(t);
  const file = join(folder, 'file.lua');
  writeFileSync(file, marking('file'));
  mkdirSync(join(folder, 'modules'));
  writeFileSync(join(folder, 'modules', 'greeting.lua'), 'return { text = "module" }');
  const requiring = 'local g = require("greeting") function envoy_on_response(h) h:headers():add("x-r", g.text) end';
  const { get } = await startProxy(t, {
    ...program,
    clusters: [staticCluster('host', upstream.port)],
    listeners: {
      all: manager(
        {
          default_source_code: source(marking('default')),
          source_codes: { one: source(marking('one')), two: { filename: file } },
          filter_context: { of: 'filter' },
        },
        [
          routeTo({ path: '/off' }, 'host', {}, perRoute({ disabled: true })),
          routeTo({ path: '/one' }, 'host', {}, perRoute({ name: 'one' })),
          routeTo({ path: '/two' }, 'host', {}, perRoute({ name: 'two', filter_context: { of: 'route' } })),
          routeTo({ path: '/none' }, 'host', {}, perRoute({ name: 'nope' })),
          routeTo({ path: '/own' }, 'host', {}, perRoute({ source_code: source(marking('own')) })),
          routeTo(
            { path: '/module' },
            'host',
            {},
            perRoute({ source_code: source(requiring), package_paths: [join(folder, 'modules', '?.lua')] }),
          ),
          routeTo({ prefix: '/' }, 'host'),
        ],
      ),
    },
  });
  const result = async (path: string) => (await get(path)).headers['x-r'];
  t.equal(await result('/'), 'defaultfilter');
  t.equal(await result('/off'), undefined);
  t.equal(await result('/one'), 'onefilter');
  t.equal(await result('/two'), 'fileroute');
  t.equal(await result('/none'), undefined);
  t.equal(await result('/module'), 'module');
  t.match(await result('/own'), /^own/);
});

besideEnvoy('failures are counted and logged, and executions counted', async (t, program) => {
  const upstream = await startUpstream(t, (_message, answer) => void answer.end('host'));
  const { baton, on } = await startProxy(t, {
    ...program,
    args: ['-l', 'warning', '--component-log-level', 'lua:info'],
    clusters: [staticCluster('host', upstream.port)],
    listeners: {
      plain: manager({ inline_code: 'function envoy_on_request(h)\n  h:logWarn("hello")\n  error("boom")\nend' }, [
        routeTo({ prefix: '/' }, 'host'),
      ]),
      named: manager({ inline_code: 'function envoy_on_response(h)\n h:nothing()\nend', stat_prefix: 'mine' }, [
        routeTo({ prefix: '/' }, 'host'),
      ]),
    },
  });
  t.equal((await on('plain', '/')).body, 'host');
  t.equal((await on('named', '/')).body, 'host');
  await baton.waitForStats({
    'http.plain.lua.errors': 1,
    'http.plain.lua.executions': 1,
    'http.named.lua.mine.errors': 1,
    'http.named.lua.mine.executions': 1,
  });
  t.match(baton.stderr, 'script log: hello');
  t.match(baton.stderr, /script log: \[string "function envoy_on_request\(h\)\.\.\."\]:3: boom/);
  t.match(baton.stderr, "]:2: attempt to call method 'nothing' (a nil value)");
  t.match(baton.stderr, 'envoy_on_response() function not found');
});

besideEnvoy('trailers are read and changed, in both directions', async (t, program) => {
  const upstream = await startUpstream(t, (message, answer) => {
    message.resume();
    message.on('end', () => {
      answer.setHeader('trailer', 'x-t');
      answer.write('body');
      answer.addTrailers({ 'x-t': String(message.trailers['x-t']) });
      answer.end();
    });
  });
  const script = `
    function envoy_on_request(h) local x = h:trailers() x:replace("x-t", x:get("x-t") .. "-request") end
    function envoy_on_response(h)
      for chunk in h:bodyChunks() do end
      local x = h:trailers() x:add("x-u", x:get("x-t") .. "-response")
    end`;
  const { ports } = await startProxy(t, {
    ...program,
    clusters: [staticCluster('host', upstream.port, TRAILERS)],
    listeners: {
      all: {
        ...manager({ inline_code: script }, [routeTo({ prefix: '/' }, 'host')]),
        http_protocol_options: { enable_trailers: true },
      },
    },
  });
  const connection = await connectRaw(t, ports['all']!);
  connection.write('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nx-t: one\r\n\r\n');
  const text = await connection.readUntil('-response\r\n\r\n');
  t.match(text, 'x-t: one-request');
  t.match(text, 'x-u: one-request-response');
});

t.test('a script that cannot be compiled, or fails when it is loaded, is refused with its line', async (t) => {
  for (const [code, expected] of [
    ['function envoy_on_request(h)\n  x = = 1\nend', ']:2: unexpected symbol near'],
    ['local x = 1\nerror("at load")', ']:2: at load'],
    ['while true do end', 'script exceeded its time limit'],
    ['\x1bLJ\x02', 'attempt to load chunk with wrong mode'],
  ] as const) {
    const config = bootstrap({
      listeners: [
        httpListener('a', 0, manager({ default_source_code: source(code) }, [routeTo({ prefix: '/' }, 'x')])),
      ],
      clusters: [staticCluster('x', 1)],
    });
    const baton = await startBaton(t, { config, args: ['--mode', 'validate'], wait: 'spawned' });
    await baton.exited;
    t.match(baton.stderr, 'script load error: ');
    t.match(baton.stderr, expected);
  }
});

t.test('a script that needs too much time or memory fails, and others continue', async (t) => {
  const upstream = await startUpstream(t, (_message, answer) => void answer.end('host'));
  const script = `
    function envoy_on_request(h)
      local path = h:headers():get(":path")
      if path == "/loop" then while true do pcall(function() while true do end end) end end
      if path == "/memory" then local t = {} while true do t[#t + 1] = ("x"):rep(100000) .. #t end end
      if path == "/pattern" then return (("a"):rep(100000)):find("(.-)(.-)(.-)(.-)b") end
      if path == "/exit" then os.exit(1) end
      if path == "/call" then h:headers():get(h) end
      if path == "/stolen" then kept:get("a") end
      kept = h:headers()
      h:headers():add("x-fine", "1")
    end`;
  const { baton, get } = await startProxy(t, {
    clusters: [staticCluster('host', upstream.port)],
    listeners: { all: manager({ inline_code: script }, [routeTo({ prefix: '/' }, 'host')]) },
    args: ['-l', 'warning', '--concurrency', '1'],
  });
  for (const path of ['/', '/loop', '/memory', '/pattern', '/exit', '/call', '/stolen', '/memory', '/'])
    t.match(await get(path), { status: 200, body: 'host' }, path);
  await baton.waitForStats({ 'http.all.lua.errors': 7, 'http.all.lua.executions': 9 });
  const log = baton.stderr;
  t.match(log, 'script exceeded its time limit of 100 ms');
  t.match(log, 'not enough memory');
  t.match(log, 'os.exit() is not available in Baton');
  t.match(log, 'object used outside of proper scope');
});

t.test('a script can neither use what it has kept of an earlier message, nor wait for two things', async (t) => {
  const upstream = await startUpstream(t, (_message, answer) => void answer.end('host'));
  const script = `
    function envoy_on_request(h)
      local path = h:headers():get(":path")
      if path == "/keep" then kept = h:bodyChunks() end
      if path == "/use" then kept() end
      if path == "/twice" then coroutine.wrap(function() h:body() end)() h:body() end
    end`;
  const { baton, get } = await startProxy(t, {
    clusters: [staticCluster('host', upstream.port)],
    listeners: { all: manager({ inline_code: script }, [routeTo({ prefix: '/' }, 'host')]) },
    args: ['-l', 'warning', '--concurrency', '1'],
  });
  for (const path of ['/keep', '/use', '/twice'])
    t.match(await get(path, { method: 'POST', body: 'x' }), { status: 200, body: 'host' }, path);
  await baton.waitForStats({ 'http.all.lua.errors': 2 });
  t.match(baton.stderr, 'object used outside of proper scope');
  t.match(baton.stderr, 'the script waits already for another call');
});

t.test('requests are refused while a worker cannot load their script', async (t) => {
  const upstream = await startUpstream(t, (_message, answer) => void answer.end('host'));
  const file = join(tempDir(t), 'mark');
  const script = `
    local f = io.open("${file}")
    if f then f:close() error("not now") end
    function envoy_on_response(h) h:headers():add("x-fine", "1") end`;
  const { baton, get } = await startProxy(t, {
    clusters: [staticCluster('host', upstream.port)],
    listeners: { all: manager({ inline_code: script }, [routeTo({ prefix: '/' }, 'host')]) },
    args: ['-l', 'warning', '--concurrency', '1'],
  });
  writeFileSync(file, '');
  for (let i = 0; i < 2; i++) t.match(await get('/'), { status: 500, body: 'Internal Server Error' });
  await baton.waitForStats({ 'http.all.lua.errors': 2 });
  t.match(baton.stderr, /script load error: .*not now/);
  rmSync(file);
  const answer = await waitFor(async () => {
    const answer = await get('/');
    return answer.status === 200 && answer;
  });
  t.equal(answer.headers['x-fine'], '1');
});

t.test('modules in native code are refused by name', async (t) => {
  const config = bootstrap({
    listeners: [httpListener('a', 0, manager({ package_cpaths: ['/x.so'] }, [routeTo({ prefix: '/' }, 'x')]))],
    clusters: [staticCluster('x', 1)],
  });
  const baton = await startBaton(t, { config, args: ['--mode', 'validate'], wait: 'spawned' });
  await baton.exited;
  t.match(baton.stderr, /package_cpaths.*modules in native code are not loaded/);
});
