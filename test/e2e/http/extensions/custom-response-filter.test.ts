// custom_response: responses in the place of those that a matcher chooses. Results are Envoy's.

import type { Socket } from 'node:net';
import t from 'tap';
import { besideEnvoy } from '../../harness/envoy.js';
import {
  bootstrap,
  type Config,
  httpListener,
  ROUTER_FILTER,
  rawExchange,
  startBaton,
  startUpstream,
  staticCluster,
  waitFor,
} from '../../harness/index.js';
import { managerOf, routeTo, startProxy } from '../proxy.js';

const TYPE = 'type.googleapis.com';
const FILTER = 'envoy.filters.http.custom_response';

besideEnvoy('a response that the matcher chooses is replaced', async (t, program) => {
  const host = await startUpstream(t, (request, answer) => {
    const status = Number(request.headers['x-status'] ?? 200);
    answer.writeHead(status, { 'x-host': 'one', 'content-type': 'text/own' });
    answer.end('from the host');
  });
  const body = (inline_string: string) => ({ body: { inline_string } });
  const listeners: Record<string, Config> = {
    body: replacing(ofStatus('503', body('custom'))),
    status: replacing(
      ofStatus('503', {
        ...body('short'),
        status_code: 299,
        response_headers_to_add: [
          { header: { key: 'x-was', value: '%RESPONSE_CODE%' } },
          { header: { key: 'x-by', value: '%RESP(x-host)%' } },
          { header: { key: 'content-type', value: 'text/new' } },
        ],
      }),
    ),
    empty: replacing(ofStatus('503', { status_code: 220 })),
    format: replacing(
      ofStatus('503', {
        ...body('in'),
        body_format: { text_format_source: { inline_string: '[%LOCAL_REPLY_BODY% %RESPONSE_CODE% %RESP(x-host)%]' } },
      }),
    ),
    json: replacing(ofStatus('503', { ...body('in'), body_format: { json_format: { a: '%LOCAL_REPLY_BODY%' } } })),
    class: replacing(of('HttpResponseStatusCodeClassMatchInput', '5xx', body('class'))),
    local: replacing(of('HttpResponseLocalReplyMatchInput', 'true', body('local'))),
    host: replacing(of('HttpResponseLocalReplyMatchInput', 'false', body('host'))),
    request: replacing(of('HttpRequestHeaderMatchInput', '503', body('request'), { header_name: 'x-status' })),
    response: replacing(of('HttpResponseHeaderMatchInput', 'one', body('response'), { header_name: 'x-host' })),
    route: replacing(ofStatus('503', body('filter')), {
      typed_per_filter_config: { [FILTER]: filter(ofStatus('404', body('route'))) },
    }),
    none: managerOf([routeTo({ prefix: '/' }, 'host')], {
      http_filters: [
        {
          name: FILTER,
          typed_config: { '@type': `${TYPE}/envoy.extensions.filters.http.custom_response.v3.CustomResponse` },
        },
        ROUTER_FILTER,
      ],
    }),
  };
  const { on } = await startProxy(t, { ...program, listeners, clusters: [staticCluster('host', host.port)] });
  const ask = (listener: string, status: number, method = 'GET', path = '/') =>
    on(listener, path, { method, headers: { 'x-status': String(status) } });
  const custom = await ask('body', 503);
  t.match(custom, { status: 503, body: 'custom', headers: { 'content-length': '6', 'content-type': 'text/plain' } });
  t.equal(custom.headers['x-host'], undefined, 'headers of the host are gone');
  t.match(await ask('body', 200), { status: 200, body: 'from the host', headers: { 'x-host': 'one' } });
  t.match(await ask('body', 503, 'HEAD'), { status: 503, body: '', headers: { 'content-length': '6' } });
  const headers = { 'x-was': '503', 'content-type': 'text/new', 'content-length': '5' };
  const changed = await ask('status', 503);
  t.match(changed, { status: 299, body: 'short', headers });
  t.equal(changed.headers['x-by'], undefined, 'values of headers read the new head');
  const empty = await ask('empty', 503);
  t.match(empty, { status: 220, body: '' });
  t.equal(empty.headers['content-type'], undefined);
  t.match(await ask('format', 503), { body: '[in 503 one]', headers: { 'content-type': 'text/plain' } });
  t.match(await ask('json', 503), { body: '{"a":"in"}\n', headers: { 'content-type': 'text/plain' } });
  t.match(await ask('class', 504), { status: 504, body: 'class' });
  t.match(await ask('class', 404), { status: 404, body: 'from the host' });
  t.match(await ask('local', 503), { body: 'from the host' });
  t.match(await ask('local', 503, 'GET', '/direct'), { status: 403, body: 'local' });
  t.match(await ask('host', 503), { body: 'host' });
  t.match(await ask('host', 503, 'GET', '/direct'), { status: 403, body: 'direct' });
  t.match(await ask('request', 503), { body: 'request' });
  t.match(await ask('response', 200), { body: 'response' });
  t.match(await ask('route', 503), { body: 'filter' });
  t.match(await ask('route', 404), { body: 'route' });
  t.match(await ask('none', 503), { body: 'from the host' });
});

besideEnvoy('expressions and formats read a request whose response is late, and its response', async (t, program) => {
  const late: (() => void)[] = [];
  const host = await startUpstream(t, (request, answer) => {
    const send = () => answer.writeHead(503, { 'x-host': 'one' }).end();
    if (request.url === '/first') return void late.push(send);
    send();
    for (const each of late) each();
  });
  const format = {
    text_format_source: { inline_string: '%REQ(:path)% %CEL(request.headers["x-id"])% %CEL(response.code)%' },
  };
  const variable = (group: string, field: string) => ({
    select_expr: { operand: { ident_expr: { name: group } }, field },
  });
  const call = (name: string, ...args: Config[]) => ({ call_expr: { function: name, args } });
  const text = (value: string) => ({ const_expr: { string_value: value } });
  const expression = call(
    '_&&_',
    call('_==_', variable('request', 'path'), text('/first')),
    call(
      '_&&_',
      call('_==_', variable('response', 'code'), { const_expr: { int64_value: 503 } }),
      call('_==_', call('_[_]', variable('response', 'headers'), text('x-host')), text('one')),
    ),
  );
  const replaced = { body_format: format };
  const listeners = {
    header: replacing(of('HttpRequestHeaderMatchInput', 'one', replaced, { header_name: 'x-id' })),
    expression: replacing(ofExpression(expression, replaced)),
  };
  const { on } = await startProxy(t, { ...program, listeners, clusters: [staticCluster('host', host.port)] });
  for (const name of Object.keys(listeners)) {
    const first = on(name, '/first', { headers: { 'x-id': 'one' } });
    await waitFor(() => late.length > 0, { what: 'the first request' });
    // Its head takes the place of the first one.
    const second = await on(name, '/2', { headers: { 'x-fill': 'two'.repeat(1000), 'x-id': 'two' } });
    t.match(second, { status: 503, body: '' }, name);
    t.match(await first, { status: 503, body: '/first one 503' }, name);
    late.length = 0;
  }
});

t.test('a 101 is replaced only by another status', async (t) => {
  const host = await startUpstream(t, () => {});
  host.server.on('upgrade', (_request, socket: Socket) => {
    socket.on('error', () => {});
    socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\nraw');
  });
  const upgrade = { upgrade_configs: [{ upgrade_type: 'websocket' }] };
  const body = { inline_string: 'no' };
  const listeners = {
    same: { ...replacing(of('HttpResponseStatusCodeClassMatchInput', '1xx', { body })), ...upgrade },
    other: { ...replacing(of('HttpResponseStatusCodeClassMatchInput', '1xx', { body, status_code: 403 })), ...upgrade },
  };
  const { ports } = await startProxy(t, { listeners, clusters: [staticCluster('host', host.port)] });
  const ask = async (port: number, until: RegExp) => {
    const head = 'GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n';
    return (await rawExchange(port, head, { until })).text;
  };
  t.match(await ask(ports['same']!, /\r\n\r\nraw/), /^HTTP\/1.1 101 /);
  t.match(await ask(ports['other']!, /\r\n\r\nno/), /^HTTP\/1.1 403 /);
});

t.test('a policy that redirects is refused', async (t) => {
  const redirect = matcher(of('HttpResponseStatusCodeMatchInput', '503', {}));
  redirect.on_match.action.typed_config = {
    '@type': `${TYPE}/envoy.extensions.http.custom_response.redirect_policy.v3.RedirectPolicy`,
    uri: 'http://a/',
  };
  const manager = managerOf([], {
    http_filters: [{ name: FILTER, typed_config: filterOf([redirect]) }, ROUTER_FILTER],
  });
  const config = bootstrap({ listeners: [httpListener('l', 0, manager)], clusters: [] });
  const baton = await startBaton(t, { config, args: ['--mode', 'validate'], wait: 'spawned' });
  await baton.exited;
  t.match(baton.stderr, /the action is a .*LocalResponsePolicy/);
});

interface Chosen {
  readonly input: string;
  readonly exact: string;
  readonly policy: Config;
  readonly more: Config;
  /** In place of `exact`. */
  readonly expression?: Config;
}

function of(input: string, exact: string, policy: Config, more: Config = {}): Chosen {
  return { input, exact, policy, more };
}

function ofStatus(status: string, policy: Config): Chosen {
  return of('HttpResponseStatusCodeMatchInput', status, policy);
}

function ofExpression(expression: Config, policy: Config): Chosen {
  return { input: 'HttpAttributesCelMatchInput', exact: '', policy, more: {}, expression };
}

function matcher({ exact, expression, input, more, policy }: Chosen) {
  const type = `${TYPE}/envoy.extensions.http.custom_response.local_response_policy.v3.LocalResponsePolicy`;
  const room = expression === undefined ? 'envoy.type' : 'xds.type';
  const typed_config: Config = { '@type': `${TYPE}/${room}.matcher.v3.${input}`, ...more };
  const cel = {
    '@type': `${TYPE}/xds.type.matcher.v3.CelMatcher`,
    expr_match: { cel_expr_parsed: { expr: expression } },
  };
  const match =
    expression === undefined ? { value_match: { exact } } : { custom_match: { name: 'cel', typed_config: cel } };
  const action: { name: string; typed_config: Config } = { name: 'action', typed_config: { '@type': type, ...policy } };
  return {
    predicate: { single_predicate: { input: { name: 'input', typed_config }, ...match } },
    on_match: { action },
  };
}

function filterOf(matchers: Config[]): Config {
  const type = `${TYPE}/envoy.extensions.filters.http.custom_response.v3.CustomResponse`;
  return { '@type': type, custom_response_matcher: { matcher_list: { matchers } } };
}

function filter(chosen: Chosen): Config {
  return filterOf([matcher(chosen)]);
}

function replacing(chosen: Chosen, route: Config = {}): Config {
  const direct = { match: { path: '/direct' }, direct_response: { status: 403, body: { inline_string: 'direct' } } };
  return managerOf([direct, routeTo({ prefix: '/' }, 'host', {}, route)], {
    http_filters: [{ name: FILTER, typed_config: filter(chosen) }, ROUTER_FILTER],
  });
}
