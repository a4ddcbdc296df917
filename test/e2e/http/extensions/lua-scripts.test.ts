// Scripts of envoy.filters.http.lua, each on a route of its own. All results are Envoy's.

import { besideEnvoy } from '../../harness/envoy.js';
import { freePort, type HttpAnswer, ROUTER_FILTER, startUpstream, staticCluster } from '../../harness/index.js';
import { routeConfig, startProxy } from '../proxy.js';

const NAME = 'envoy.filters.http.lua';
const TYPE = 'type.googleapis.com/envoy.extensions.filters.http.lua.v3';

interface Case {
  readonly script: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body?: string;
  readonly status?: number;
  /** Fields of the request that the host has received; undefined: absent. */
  readonly host?: Readonly<Record<string, string | undefined>>;
  readonly client?: Readonly<Record<string, string | undefined>>;
  readonly answer?: string;
  /** What the host has received as body. */
  readonly received?: string;
  readonly url?: string;
}

/** The function for requests; `expression` becomes the field `x-r` of the request. */
const tells = (expression: string) => `
function envoy_on_request(h)
  local ok, value = pcall(function() return ${expression} end)
  h:headers():add("x-r", tostring(value))
end`;
const request = (body: string) => `function envoy_on_request(h)\n${body}\nend`;
const responding = (body: string) => `function envoy_on_response(h)\n${body}\nend`;

const CASES: Readonly<Record<string, Case>> = {
  // ── The language ──
  'numbers print as in Lua 5.1': {
    script: tells('10/2 .. " " .. 1/3 .. " " .. 2^53 .. " " .. 1e15 .. " " .. string.format("%d %5.2f %s", 3, 2.5, 7)'),
    host: { 'x-r': '5 0.33333333333333 9.007199254741e+15 1e+15 3  2.50 7' },
  },
  'unpack, setfenv, loadstring and # of LuaJIT exist': {
    script: tells(
      `select("#", unpack({1,2,3})) .. setfenv(loadstring("return x"), {x = 4})() .. #"abc" .. tostring(table.getn({1,2})) .. math.pow(2, 3)`,
    ),
    host: { 'x-r': '34328' },
  },
  'goto, hexadecimal escapes and bit operations work': {
    script: tells(
      `(function() for i = 1, 3 do if i == 2 then goto done end end ::done:: return "\\x41" .. bit.band(7, 5) end)()`,
    ),
    host: { 'x-r': 'A5' },
  },
  'metamethods of Lua 5.2 work': {
    script: tells('#setmetatable({}, { __len = function() return 42 end }) .. table.pack(1, nil, 3).n'),
    host: { 'x-r': '423' },
  },
  'patterns find, replace and split': {
    script: tells(
      `("a=1;b=2"):gsub("(%w)=(%w)", "%2=%1") .. ("/a/b"):match("^/(%w+)") .. table.concat({("x,y"):match("(%w),(%w)")}, "-")`,
    ),
    host: { 'x-r': '1=a;2=bax-y' },
  },
  'globals last between requests of a worker': {
    script:
      'count = 0 function envoy_on_request(h) count = count + 1 h:headers():add("x-r", count > 0 and "counted" or "") end',
    host: { 'x-r': 'counted' },
  },
  'errors have the line of the script': {
    script: request('local ok, e = pcall(function() error("boom") end) h:headers():add("x-r", e:match(":%d+: .*"))'),
    host: { 'x-r': ':3: boom' },
  },
  'a function can be called over pcall and yield in it': {
    script: request(
      'local ok, b = pcall(function() return h:body():length() end) h:headers():add("x-r", tostring(ok) .. b)',
    ),
    method: 'POST',
    body: 'abc',
    host: { 'x-r': 'true3' },
  },
  // ── Headers ──
  'get joins values, getAtIndex and getNumValues count them': {
    script: tells('h:headers():get("X-A") .. h:headers():getNumValues("x-a") .. h:headers():getAtIndex("x-a", 1)'),
    headers: { 'x-a': ['1', '2'] },
    host: { 'x-r': '1,222' },
  },
  'a field that is absent is nil': {
    script: tells('tostring((h:headers():get("nope"))) .. h:headers():getNumValues("nope")'),
    host: { 'x-r': 'nil0' },
  },
  'fields are added, replaced and removed': {
    script: request(
      'local x = h:headers() x:add("x-b", "1") x:add("x-b", "2") x:replace("x-a", "new") x:remove("x-c")',
    ),
    headers: { 'x-a': 'old', 'x-c': 'gone' },
    host: { 'x-b': '1, 2', 'x-a': 'new', 'x-c': undefined },
  },
  'the path and the host are replaced': {
    script: request('h:headers():replace(":path", "/changed?x=1") h:headers():replace(":authority", "other.example")'),
    host: { host: 'other.example' },
    url: '/changed?x=1',
  },
  'the pseudo-headers of a request are fields': {
    script: request(
      'local x = h:headers() h:headers():add("x-r", x:get(":method") .. x:get(":path"):sub(1, 2) .. x:get(":scheme") .. tostring(x:get(":authority") ~= nil))',
    ),
    host: { 'x-r': 'GET/chttptrue' },
  },
  'pairs() iterates over all fields, the pseudo-headers first': {
    script: request(
      'local t = {} for k, v in pairs(h:headers()) do t[#t + 1] = k end h:headers():add("x-r", t[1]:sub(1, 1) .. tostring(#t > 5) .. table.concat(t, " "):match("x%-a.*x%-a"))',
    ),
    headers: { 'x-a': ['1', '2'] },
    host: { 'x-r': ':truex-a x-a' },
  },
  'headers do not change while they are iterated': {
    script: responding(
      'local e for k in pairs(h:headers()) do e = select(2, pcall(function() h:headers():add("x", "y") end)) end h:headers():add("x-r", e:match(": (.*)"))',
    ),
    client: { 'x-r': 'header map cannot be modified while iterating' },
  },
  'a second iteration needs the end of the first': {
    script: tells('(function() for k in pairs(h:headers()) do for l in pairs(h:headers()) do end end end)()').replace(
      'h:headers():add("x-r", tostring(value))',
      'h:streamInfo():dynamicMetadata():set("r", "v", value:match(": (.*)"))',
    ),
    client: { 'x-meta': 'cannot create a second iterator before completing the first' },
  },
  'a wrong argument names its type': {
    script: tells('h:headers():get({})'),
    host: { 'x-r': "bad argument #2 to '?' (string expected, got table)" },
  },
  'the response function reads the request': {
    script: responding('h:headers():add("x-r", h:requestHeaders():get("x-a"))'),
    headers: { 'x-a': 'seen' },
    client: { 'x-r': 'seen' },
  },
  'a status is changed, with a reason phrase': {
    script: responding('h:headers():replace(":status", "202") h:headers():setHttp1ReasonPhrase("Fine Then")'),
    status: 202,
  },
  'fields of a response are added and removed': {
    script: responding('h:headers():add("x-r", h:headers():get(":status")) h:headers():remove("x-host")'),
    client: { 'x-r': '200', 'x-host': undefined },
  },
  'headers do not change after they have continued': {
    script: responding(
      'for c in h:bodyChunks() do local ok, e = pcall(function() h:headers():add("a", "b") end) h:streamInfo():dynamicMetadata():set("r", "v", e) end',
    ),
    status: 200,
  },
  // ── Bodies ──
  'body() waits for the whole request': {
    script: request('local b = h:body() h:headers():add("x-r", b:length() .. b:getBytes(1, 3))'),
    method: 'POST',
    body: 'hello',
    host: { 'x-r': '5ell' },
    received: 'hello',
  },
  'body() of a request without one is nil': {
    script: tells('tostring((h:body()))'),
    host: { 'x-r': 'nil' },
  },
  'body(true) of a request without one is empty': {
    script: tells('h:body(true):length()'),
    host: { 'x-r': '0' },
  },
  'getBytes() outside of the body fails': {
    script: tells('h:body():getBytes(3, 30)'),
    method: 'POST',
    body: 'hello',
    host: { 'x-r': 'index/length must be >= 0 and (index + length) must be <= buffer size' },
  },
  'setBytes() replaces a request and its length': {
    script: request('local b = h:body() h:headers():add("x-r", tostring(b:setBytes("new body")))'),
    method: 'POST',
    body: 'hello',
    host: { 'x-r': '8', 'content-length': '8' },
    received: 'new body',
  },
  'setBytes() replaces a response': {
    script: responding(
      'local b = h:body() b:setBytes(b:getBytes(0, b:length()):upper()) h:headers():add("x-r", "done")',
    ),
    client: { 'x-r': 'done', 'content-length': '9' },
    answer: 'FROM HOST',
  },
  'setBytes() gives a body to a response without one': {
    script: responding('h:body(true):setBytes("made up")'),
    headers: { 'x-empty': '1' },
    answer: 'made up',
  },
  'bytes are not text': {
    script: request(
      'local b = h:body() b:setBytes("\\0\\255\\n" .. b:getBytes(0, 1)) h:headers():add("x-r", tostring(b:length()))',
    ),
    method: 'POST',
    body: 'abc',
    host: { 'x-r': '4' },
    received: '\0\xff\na',
  },
  'bodyChunks() passes each piece': {
    script: request(
      'local n = 0 for c in h:bodyChunks() do n = n + c:length() end h:streamInfo():dynamicMetadata():set("r", "v", tostring(n))',
    ),
    method: 'POST',
    body: 'hello',
    received: 'hello',
    client: { 'x-meta': '5' },
  },
  'a piece of a body is usable until the script waits': {
    script: request(
      'local v for c in h:bodyChunks() do h:httpCall("host", {[":method"] = "GET", [":path"] = "/call", [":authority"] = "svc"}, nil, 5000) v = select(2, pcall(function() c:length() end)) end h:streamInfo():dynamicMetadata():set("r", "v", v:match(": (.*)"))',
    ),
    method: 'POST',
    body: 'hello',
    received: 'hello',
    client: { 'x-meta': 'object used outside of proper scope' },
  },
  'body() after bodyChunks() fails': {
    script: request(
      'for c in h:bodyChunks() do end local ok, e = pcall(function() h:body() end) h:streamInfo():dynamicMetadata():set("r", "v", e:match(": (.*)"))',
    ),
    method: 'POST',
    body: 'hello',
    client: { 'x-meta': 'cannot call body() after body has been streamed' },
  },
  'trailers() of a message without any is nil': {
    script: request('local x = h:trailers() h:streamInfo():dynamicMetadata():set("r", "v", tostring(x))'),
    method: 'POST',
    body: 'abc',
    client: { 'x-meta': 'nil' },
  },
  // ── Answers ──
  'respond() answers the request': {
    script: request(
      'h:respond({[":status"] = "403", ["x-r"] = "why", ["x-list"] = {"a", "b"}}, "no way") error("not reached")',
    ),
    status: 403,
    client: { 'x-r': 'why', 'x-list': 'a, b', 'content-type': 'text/plain', 'content-length': '6' },
    answer: 'no way',
  },
  'respond() without a body answers': {
    script: request('h:respond({[":status"] = "204"})'),
    status: 204,
    answer: '',
  },
  'a respond() passes the response function': {
    script: `${request('h:respond({[":status"] = "401"}, "x")')}\n${responding('h:headers():add("x-r", h:headers():get(":status"))')}`,
    status: 401,
    client: { 'x-r': '401' },
  },
  'respond() needs a status': {
    script: tells('h:respond({[":status"] = "99"}, "x")'),
    host: { 'x-r': ':status must be between 200-599' },
  },
  'a response cannot be answered': {
    script: responding(
      'local ok, e = pcall(function() h:respond({[":status"] = "401"}, "x") end) h:headers():add("x-r", e:match(": (.*)"))',
    ),
    client: { 'x-r': 'respond not currently supported in the response path' },
  },
  'a request is answered after its body': {
    script: request('h:respond({[":status"] = "400"}, h:body():getBytes(0, 2))'),
    method: 'POST',
    body: 'hello',
    status: 400,
    answer: 'he',
  },
  // ── Errors ──
  'a request whose script fails continues': {
    script: request('h:headers():add("x-r", "before") local x = nil .. "a"'),
    host: { 'x-r': 'before' },
  },
  'a response whose script fails continues': {
    script: responding('h:headers():add("x-r", "before") error({})'),
    client: { 'x-r': 'before' },
  },
  'an unexpected yield fails': {
    script: request('h:headers():add("x-r", "before") coroutine.yield() h:headers():add("x-r", "after")'),
    host: { 'x-r': 'before' },
  },
  'coroutines of a script work': {
    script: tells(
      '(function() local c = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end) return c() + c() + c() end)()',
    ),
    host: { 'x-r': '6' },
  },
  // ── Calls ──
  'httpCall() waits for a response': {
    script: request(
      'local head, body = h:httpCall("host", {[":method"] = "POST", [":path"] = "/call", [":authority"] = "svc", ["x-q"] = "1"}, "asked", 5000) h:headers():add("x-r", head[":status"] .. head["x-host"] .. body)',
    ),
    host: { 'x-r': '200yesfrom host' },
  },
  'httpCall() to a host that is down gets 503': {
    script: request(
      'local head, body = h:httpCall("down", {[":method"] = "GET", [":path"] = "/", [":authority"] = "svc"}, "", 5000) h:headers():add("x-r", head[":status"] .. tostring(body ~= nil))',
    ),
    host: { 'x-r': '503true' },
  },
  'httpCall() returns the last of repeated fields, or all': {
    script: request(
      'local m = {[":method"] = "GET", [":path"] = "/twice", [":authority"] = "svc"} local a = h:httpCall("host", m, nil, 5000) local b = h:httpCall("host", m, nil, {timeout_ms = 5000, return_duplicate_headers = true}) h:headers():add("x-r", a["x-two"] .. table.concat(b["x-two"], "+"))',
    ),
    host: { 'x-r': '21+2' },
  },
  'httpCall() without waiting returns nothing': {
    script: request(
      'h:headers():add("x-r", tostring((h:httpCall("host", {[":method"] = "GET", [":path"] = "/", [":authority"] = "svc"}, nil, 500, true))))',
    ),
    host: { 'x-r': 'nil' },
  },
  'httpCall() needs a cluster': {
    script: tells('h:httpCall("nope", {}, "", 5)'),
    host: { 'x-r': 'http call cluster invalid. Must be configured' },
  },
  'httpCall() needs a method, a path and an authority': {
    script: tells('h:httpCall("host", {[":path"] = "/"}, "", 5)'),
    host: { 'x-r': "http call headers must include ':path', ':method', and ':authority'" },
  },
  'httpCall() checks its timeout': {
    script: tells('h:httpCall("host", {[":path"] = "/", [":method"] = "GET", [":authority"] = "x"}, "", -5)'),
    host: { 'x-r': 'http call timeout must be >= 0' },
  },
  'httpCall() in a response': {
    script: responding(
      'local head, body = h:httpCall("host", {[":method"] = "GET", [":path"] = "/call", [":authority"] = "svc"}, nil, 5000) h:headers():add("x-r", body)',
    ),
    client: { 'x-r': 'from host' },
    answer: 'from host',
  },
  'a call decides about a request': {
    script: request(
      'local head = h:httpCall("host", {[":method"] = "GET", [":path"] = "/call", [":authority"] = "svc"}, nil, 5000) h:respond({[":status"] = "418"}, head[":status"])',
    ),
    status: 418,
    answer: '200',
  },
  // ── The stream ──
  'dynamic metadata keeps what a script sets': {
    script: request(
      'local m = h:streamInfo():dynamicMetadata() m:set("r", "v", "text") m:set("r", "n", {a = {1, 2}, b = true}) local g = m:get("r") h:headers():add("x-r", g.v .. g.n.a[2] .. tostring(g.n.b))',
    ),
    host: { 'x-r': 'text2true' },
    client: { 'x-meta': 'text' },
  },
  'dynamic metadata is iterated': {
    script: request(
      'local m = h:streamInfo():dynamicMetadata() m:set("r", "v", 1.5) local t = {} for k, v in pairs(m) do t[#t + 1] = k .. v.v end h:headers():add("x-r", table.concat(t))',
    ),
    host: { 'x-r': 'r1.5' },
  },
  'dynamic metadata refuses functions': {
    script: tells('h:streamInfo():dynamicMetadata():set("r", "v", print)'),
    host: { 'x-r': `unexpected type 'function' in dynamicMetadata` },
  },
  'dynamic metadata refuses mixed tables': {
    script: tells('h:streamInfo():dynamicMetadata():set("r", "v", {1, x = 2})'),
    host: { 'x-r': 'unexpected type number in table key (only string keys are supported)' },
  },
  'streamInfo() names protocol, route and addresses': {
    script: request(
      'local s = h:streamInfo() h:headers():add("x-r", s:protocol() .. s:routeName():sub(1, 4) .. tostring(s:downstreamRemoteAddress():match("^127.0.0.1:%d+$") ~= nil) .. tostring(s:downstreamDirectRemoteAddress() == s:downstreamRemoteAddress()) .. "[" .. s:requestedServerName() .. s:virtualClusterName() .. "]" .. s:downstreamLocalAddress():match("^[%d.]+") .. tostring(s:downstreamSslConnection()) .. tostring(h:connection():ssl()))',
    ),
    host: { 'x-r': 'HTTP/1.1casetruetrue[]127.0.0.1nilnil' },
  },
  'filter state keeps strings': {
    script: request(
      'local f = h:streamInfo():filterState() f:set("k", "envoy.string", "v") h:headers():add("x-r", f:get("k") .. tostring((f:get("nope"))) .. tostring((f:get("k", "field"))))',
    ),
    host: { 'x-r': 'vnilnil' },
  },
  'filter state needs a factory': {
    script: tells('h:streamInfo():filterState():set("k", "nope", "v")'),
    host: { 'x-r': `'nope' does not have an object factory` },
  },
  'metadata of the route is read': {
    script: request(
      'local t = {} for k in pairs(h:metadata()) do t[#t + 1] = k end table.sort(t) h:headers():add("x-r", h:metadata():get("key").list[2] .. table.concat(t) .. tostring((h:metadata():get("nope"))) .. h:route():metadata():get("key").list[1] .. h:virtualHost():metadata():get("of"))',
    ),
    host: { 'x-r': '2keynil1host' },
  },
  'filterContext() is that of the filter': {
    script: tells('h:filterContext():get("name")'),
    host: { 'x-r': 'of the filter' },
  },
  'typed metadata is nil': {
    script: tells(
      'tostring(h:streamInfo():dynamicTypedMetadata("x")) .. tostring(h:connectionStreamInfo():dynamicTypedMetadata("x")) .. tostring((h:connectionStreamInfo():dynamicMetadata():get("x")))',
    ),
    host: { 'x-r': 'nilnilnil' },
  },
  'timestamps are in milliseconds, or as text in microseconds': {
    script: tells(
      'tostring(h:timestamp() > 1.6e12) .. #h:timestampString() .. #h:timestampString(EnvoyTimestampResolution.MICROSECOND)',
    ),
    host: { 'x-r': 'true1316' },
  },
  'base64 is made and read': {
    script: tells('h:base64Escape("a\\0b") .. h:base64Decode("YWJj") .. tostring(h:base64Decode("!!"))'),
    host: { 'x-r': 'YQBiabcnil' },
  },
  'counters, gauges and histograms count': {
    script: request(
      'local s = h:stats() s:counter("c"):inc() s:counter("c"):add(4) local g = s:gauge("g") g:set(5) g:inc() g:dec() g:add(3) g:sub(1) s:histogram("h", "ms"):recordValue(5) h:headers():add("x-r", s:counter("c"):value() .. " " .. g:value())',
    ),
    host: { 'x-r': '5 7' },
  },
  'a histogram has a unit of a list': {
    script: tells('h:stats():histogram("x", "zz")'),
    host: {
      'x-r':
        "invalid histogram unit 'zz', expected 'ms', 'milliseconds', 'microseconds', 'nanoseconds', 'bytes', or 'unspecified'",
    },
  },
  'another route is selected when headers have changed': {
    script: request('h:headers():replace(":path", "/moved")'),
    answer: 'moved',
  },
  'a request can be sent to a host of its cluster': {
    script: tells('h:setUpstreamOverrideHost("foo")'),
    host: { 'x-r': 'host is not a valid IP address' },
  },
  'a strict host that the cluster does not have fails the request': {
    script: request('h:setUpstreamOverrideHost("127.0.0.1:1", true)'),
    status: 503,
    answer: 'no healthy upstream',
  },
  'a host that the cluster does not have is optional': {
    script: request('h:setUpstreamOverrideHost("127.0.0.1:1")'),
    status: 200,
    answer: 'from host',
  },
  'the connection closes when a script asks for it': {
    script: request('h:streamInfo():drainConnectionUponCompletion()'),
    client: { connection: 'close' },
  },
  'signatures are verified': {
    script: request(`
      local der = h:base64Decode("MFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBAKj34GkxFhD90vcNLYLInFEX6Ppy1tPf9Cnzj4p4WGeKLs1Pt8QuKUpRKfFLfRYC9AIKjbJTWit+CqvjWYzvQwECAwEAAQ==")
      local key = h:importPublicKey(der, #der):get()
      local ok, e = h:verifySignature("SHA256", key, "sig", 3, "data", 4)
      local ok2, e2 = h:verifySignature("NOPE", key, "sig", 3, "data", 4)
      h:headers():add("x-r", tostring(ok) .. tostring(ok2) .. e .. e2)`),
    host: { 'x-r': 'falsefalseFailed to verify digest. Error code: 0NOPE is not supported.' },
  },
};

besideEnvoy('each script has its effect', async (t, program) => {
  const received: { headers: Record<string, unknown>; body: string; url: string }[] = [];
  const upstream = await startUpstream(t, (message, answer) => {
    const pieces: Buffer[] = [];
    message.on('data', (piece: Buffer) => pieces.push(piece));
    message.on('end', () => {
      const called = message.url === '/call' || message.url === '/twice' || message.headers['host'] === 'svc';
      if (!called) {
        const body = Buffer.concat(pieces).toString('latin1');
        received.push({ headers: message.headers, body, url: message.url! });
      }
      answer.setHeader('x-host', 'yes');
      if (message.url === '/twice') answer.setHeader('x-two', ['1', '2']);
      answer.end(message.headers['x-empty'] === undefined ? 'from host' : undefined);
    });
  });
  const names = Object.keys(CASES);
  const route = (name: string, index: number) => ({
    name: `case-${index}`,
    match: { path: `/c${index}` },
    route: { cluster: 'host' },
    metadata: { filter_metadata: { [NAME]: { key: { list: [1, 2] } } } },
    response_headers_to_add: [{ header: { key: 'x-meta', value: '%DYNAMIC_METADATA(r:v)%' } }],
    typed_per_filter_config: {
      [NAME]: { '@type': `${TYPE}.LuaPerRoute`, source_code: { inline_string: `\n${CASES[name]!.script.trim()}` } },
    },
  });
  const routes = [
    { match: { path: '/moved' }, direct_response: { status: 200, body: { inline_string: 'moved' } } },
    { match: { path: '/changed' }, route: { cluster: 'host' } },
    ...names.map(route),
  ];
  const metadata = { filter_metadata: { [NAME]: { of: 'host' } } };
  const manager = {
    route_config: routeConfig([{ name: 'all', domains: ['*'], metadata, routes }]),
    http_filters: [
      { name: NAME, typed_config: { '@type': `${TYPE}.Lua`, filter_context: { name: 'of the filter' } } },
      ROUTER_FILTER,
    ],
  };
  const proxy = await startProxy(t, {
    ...program,
    args: ['-l', 'critical'],
    listeners: { all: manager },
    clusters: [staticCluster('host', upstream.port), staticCluster('down', await freePort())],
  });
  for (const [index, name] of names.entries()) {
    const {
      answer,
      body,
      client = {},
      headers,
      host,
      method = 'GET',
      received: sent,
      status = 200,
      url,
    } = CASES[name]!;
    const before = received.length;
    const result: HttpAnswer = await proxy.get(`/c${index}`, {
      method,
      ...(headers === undefined ? {} : { headers }),
      ...(body === undefined ? {} : { body }),
    } as never);
    t.equal(result.status, status, `${name}: status`);
    for (const [key, value] of Object.entries(client))
      t.equal(result.headers[key], value, `${name}: ${key} of the response`);
    if (answer !== undefined) t.equal(result.body, answer, `${name}: body of the response`);
    const seen = received[before];
    for (const [key, value] of Object.entries(host ?? {}))
      t.equal(seen?.headers[key], value, `${name}: ${key} at the host`);
    if (sent !== undefined) t.equal(seen?.body, sent, `${name}: body at the host`);
    if (url !== undefined) t.equal(seen?.url, url, `${name}: URL at the host`);
  }
});
