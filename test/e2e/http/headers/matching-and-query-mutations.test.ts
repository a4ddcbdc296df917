// header_mutation beyond single fields: names that match, query parameters, and trailers. All results are Envoy's, except where the test says
// that Baton is stricter.

import { connect, createServer, type IncomingHttpHeaders } from 'node:http2';
import type { AddressInfo } from 'node:net';
import t, { type Test } from 'tap';
import { besideEnvoy, type ProxyProgram } from '../../harness/envoy.js';
import {
  bootstrap,
  type Config,
  HTTP2_CLUSTER,
  httpListener,
  ROUTER_FILTER,
  startBaton,
  startEchoUpstream,
  staticCluster,
} from '../../harness/index.js';
import { managerOf, routeTo, startProxy } from '../proxy.js';

const TYPE = 'type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.HeaderMutation';

const set = (key: string, value: string, action?: string) => ({
  append: { record: { key, value }, ...(action !== undefined && { action }) },
});
const add = (key: string, value: string) => ({ append: { header: { key, value } } });
const removeMatching = (key_matcher: Config) => ({ remove_on_match: { key_matcher } });

function manager(mutations: Config): Config {
  return managerOf([routeTo({ prefix: '/' }, 'host')], {
    http_filters: [{ name: 'mutation', typed_config: { '@type': TYPE, mutations } }, ROUTER_FILTER],
  });
}

interface Echo {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Returns what the host gets by the path, or by the header fields, of a request. */
async function start(t: Test, program: ProxyProgram, listeners: Readonly<Record<string, Config>>) {
  const host = await startEchoUpstream(t);
  const proxy = await startProxy(t, {
    ...program,
    listeners: Object.fromEntries(Object.entries(listeners).map(([name, mutations]) => [name, manager(mutations)])),
    clusters: [staticCluster('host', host.port)],
  });
  return async (name: string, path: string, headers: Record<string, string> = {}): Promise<Echo> => {
    const { body } = await proxy.on(name, path, { headers });
    return JSON.parse(body) as Echo;
  };
}

besideEnvoy('fields whose names match are removed', async (t, program) => {
  const echo = await start(t, program, {
    prefix: { request_mutations: [removeMatching({ prefix: 'x-a' })] },
    case: { request_mutations: [removeMatching({ prefix: 'X-A' })] },
    folded: { request_mutations: [removeMatching({ prefix: 'X-A', ignore_case: true })] },
    ordered: {
      request_mutations: [
        add('x-ab', 'earlier'),
        removeMatching({ safe_regex: { regex: 'x-a.*' } }),
        add('x-ab', 'later'),
      ],
    },
    host: { request_mutations: [removeMatching({ exact: 'host' })] },
  });
  const names = async (listener: string) => {
    const { headers } = await echo(listener, '/', { 'x-ab': '1', 'X-Ac': '2', 'x-b': '3' });
    return Object.keys(headers).filter((name) => /^x-.b?c?$|^host$/.test(name));
  };
  t.same((await names('prefix')).sort(), ['host', 'x-b']);
  t.same((await names('case')).sort(), ['host', 'x-ab', 'x-ac', 'x-b'], 'names are in lower case');
  t.same((await names('folded')).sort(), ['host', 'x-b']);
  t.same((await names('ordered')).sort(), ['host', 'x-ab', 'x-b']);
  t.equal((await echo('ordered', '/', { 'x-ab': '1' })).headers['x-ab'], 'later');
  t.same((await names('host')).sort(), ['host', 'x-ab', 'x-ac', 'x-b'], 'the host is not a field that matches');
});

besideEnvoy('query parameters are added, replaced and removed', async (t, program) => {
  const echo = await start(t, program, {
    changed: { query_parameter_mutations: [set('n', 'v1'), set('a', 'x'), { remove: 'b' }] },
    absent: { query_parameter_mutations: [set('a', 'x', 'ADD_IF_ABSENT'), set('z', 'x', 'ADD_IF_ABSENT')] },
    replaced: {
      query_parameter_mutations: [
        set('a', 'x', 'OVERWRITE_IF_EXISTS_OR_ADD'),
        set('z', 'y', 'OVERWRITE_IF_EXISTS_OR_ADD'),
      ],
    },
    present: {
      query_parameter_mutations: [set('a', 'x', 'OVERWRITE_IF_EXISTS'), set('z', 'y', 'OVERWRITE_IF_EXISTS')],
    },
    encoded: {
      query_parameter_mutations: [
        set('f', '%REQ(x-a)%'),
        set('e', `!"#$%%&'()*+,-./:;<=>?@[\\]^_\`{|}~ é`),
        set('none', '%REQ(x-none)%'),
      ],
    },
    nothing: { query_parameter_mutations: [{ remove: 'other' }] },
    decoded: { query_parameter_mutations: [{ remove: 'AA' }, set('x', 'n', 'OVERWRITE_IF_EXISTS')] },
  });
  const url = async (name: string, path: string) => (await echo(name, path, { 'x-a': 'b c' })).url;
  t.equal(await url('changed', '/p?a=1&b=2&a=3&c'), '/p?a=1&a=3&a=x&c=&n=v1');
  t.equal(await url('changed', '/p'), '/p?a=x&n=v1');
  t.equal(await url('changed', '/p?'), '/p?a=x&n=v1');
  t.equal(await url('absent', '/p?a=1&b=2&a=3&c'), '/p?a=1&a=3&b=2&c=&z=x');
  t.equal(await url('replaced', '/p?a=1&b=2&a=3&c'), '/p?a=x&b=2&c=&z=y');
  t.equal(await url('present', '/p?a=1&b=2&a=3&c'), '/p?a=x&b=2&c=');
  t.equal(await url('present', '/p'), '/p');
  t.equal(
    await url('encoded', '/p?a'),
    '/p?a=&e=%21%22%23%24%25%26%27%28%29*%2B%2C-.%2F%3A%3B%3C%3D%3E%3F%40%5B%5C%5D%5E_%60%7B%7C%7D%7E%20%C3%A9&f=b%20c&none=',
  );
  t.equal(await url('nothing', '/p?c&b=1'), '/p?b=1&c=', 'the query is written again');
  t.equal(await url('nothing', '/p?'), '/p');
  t.equal(await url('decoded', '/p?x=%20y&b=&a+b=%zz&A%41=1&=v&&k'), '/p?=v&=&a+b=%zz&b=&k=&x=n');
});

t.test('escapes in parameters of a request stay escaped', async (t) => {
  // Envoy passes them on decoded: a client could add parameters, and break the request line.
  const echo = await start(
    t,
    { command: undefined },
    { main: { query_parameter_mutations: [set('role', 'user', 'OVERWRITE_IF_EXISTS_OR_ADD')] } },
  );
  const { url } = await echo('main', '/p?name=a%26role%3Dadmin%20%0d%0a&rol%65=admin');
  t.equal(url, '/p?name=a%26role%3Dadmin%20%0d%0a&role=user');
});

t.test('a name with escapes is that of the parameters that it means', async (t) => {
  // Envoy leaves those of the client beside the new one.
  const set_role = set('user%20role', 'user', 'OVERWRITE_IF_EXISTS');
  const echo = await start(t, { command: undefined }, { main: { query_parameter_mutations: [set_role] } });
  t.equal((await echo('main', '/p?user%20role=admin&%75ser%20rol%65=admin')).url, '/p?user%20role=user');
});

/** Without the symbols that Node adds. */
function plain(fields: IncomingHttpHeaders): object {
  return Object.fromEntries(Object.entries(fields));
}

besideEnvoy('trailers are changed', async (t, program) => {
  let received: IncomingHttpHeaders = {};
  const server = createServer();
  server.on('stream', (stream) => {
    stream.on('error', () => {});
    stream.on('trailers', (trailers) => (received = trailers));
    stream.resume();
    stream.on('end', () => {
      stream.respond({ ':status': 200 }, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 't-a': '1', 't-b': '2' }));
      stream.end('body');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  const proxy = await startProxy(t, {
    ...program,
    listeners: {
      main: manager({
        request_trailers_mutations: [add('t-new', '%REQ(x-a)%'), { remove: 't-q' }],
        response_trailers_mutations: [add('t-new', '%RESPONSE_CODE% %TRAILER(t-a)% %REQ(x-a)%'), { remove: 't-a' }],
      }),
      matching: manager({ response_trailers_mutations: [removeMatching({ prefix: 't-' })] }),
    },
    clusters: [staticCluster('host', (server.address() as AddressInfo).port, HTTP2_CLUSTER)],
  });
  const trailersOf = async (name: string) => {
    const session = connect(`http://127.0.0.1:${proxy.ports[name]}`);
    const stream = session.request({ ':method': 'POST', 'x-a': 'head' }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 't-q': '1', 't-r': '2' }));
    let trailers: IncomingHttpHeaders = {};
    stream.on('trailers', (fields) => (trailers = fields));
    stream.resume();
    stream.end('request');
    await new Promise((resolve) => stream.on('close', resolve));
    session.close();
    return plain(trailers);
  };
  t.same(await trailersOf('main'), { 't-b': '2', 't-new': '200 1 head' });
  t.same(plain(received), { 't-r': '2', 't-new': 'head' });
  t.same(await trailersOf('matching'), {});
  t.same(plain(received), { 't-q': '1', 't-r': '2' });
});

for (const [what, mutation, text] of [
  ['a number', { append: { record: { key: 'n', value: 3 } } }, /\[0\]\.append\.record: Only string value is allowed/],
  ['no record', { append: {} }, /\[0\]\.append: No record specified for append mutation/],
  ['no action', {}, /\[0\]: One of 'append'\/'remove' must be specified/],
  ['two actions', { ...set('a', 'b'), remove: 'a' }, /\[0\]: Only one of 'append'\/'remove can be specified/],
  ['a name that would end the parameter', set('a&b', 'c'), /record\.key: 'a&b' cannot be the name of a parameter/],
  ['an unknown operator', set('a', '%NO%'), /record\.value: .*%NO%/],
] as const) {
  t.test(`refused: ${what}`, async (t) => {
    const listeners = [httpListener('main', 0, manager({ query_parameter_mutations: [mutation] }))];
    const baton = await startBaton(t, {
      config: bootstrap({ listeners, clusters: [staticCluster('host', 1)] }),
      wait: 'spawned',
    });
    t.not((await baton.exited).code, 0);
    t.match(baton.stderr, text);
  });
}
