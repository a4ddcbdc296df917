// Header fields of requests to an authorization service and of its responses, repeated fields included. All results are
// Envoy's, except where the test says that Baton is stricter.

import type { Test } from 'tap';
import { besideEnvoy, type ProxyProgram } from '../../harness/envoy.js';
import { type Config, connectRaw, ROUTER_FILTER, staticCluster } from '../../harness/index.js';
import { managerOf, routeTo, startProxy } from '../proxy.js';
import { type RawUpstream, response, startRawUpstream } from '../raw-upstream.js';

const TYPE = 'type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz';

/** Fields of the request to the service, and of its outcome: values by name, in line order. */
interface Outcome {
  readonly status: number;
  readonly asked: Fields;
  readonly host: Fields;
  readonly client: Fields;
}

type Fields = Readonly<Record<string, string[]>>;

/** Fields that every response has. */
const USUAL =
  /^(content-length|date|server|x-forwarded-proto|x-request-id|x-envoy-(internal|expected-.*|upstream-.*))$/;

function fieldsOf(head: string | undefined): Fields {
  const fields: Record<string, string[]> = {};
  for (const line of head?.split('\r\n').slice(1) ?? []) {
    const [, name, value] = /^([^:]*): *(.*)$/.exec(line) ?? [];
    if (name !== undefined && !USUAL.test(name.toLowerCase())) (fields[name.toLowerCase()] ??= []).push(value!);
  }
  return fields;
}

const named = (...names: string[]) => ({ patterns: names.map((exact) => ({ exact })) });
const EVERY = { patterns: [{ safe_regex: { regex: '.*' } }] };

function manager(config: Config, lists: Config = {}): Config {
  const typed_config = {
    '@type': TYPE,
    http_service: {
      server_uri: { uri: 'http://service', cluster: 'service', timeout: '5s' },
      authorization_response: lists,
    },
    ...config,
  };
  return managerOf([routeTo({ prefix: '/' }, 'host')], {
    http_filters: [{ name: 'authz', typed_config }, ROUTER_FILTER],
  });
}

/** Sends GETs with the header lines and the service's response of each test. */
async function start(t: Test, program: ProxyProgram, listeners: Record<string, Config>) {
  let answer = '';
  const service = await startRawUpstream(t, ({ socket }) => {
    socket.write(answer);
  });
  const host = await startRawUpstream(t, ({ socket }) => {
    socket.write(response(200));
  });
  const { ports } = await startProxy(t, {
    ...program,
    listeners,
    clusters: [staticCluster('host', host.port), staticCluster('service', service.port)],
  });
  const lastHead = (upstream: RawUpstream, before: number) => fieldsOf(upstream.requests[before]?.head);
  return async (listener: string, request: readonly string[], given: readonly string[] = [], status = 200) => {
    const before = [service.requests.length, host.requests.length] as const;
    const body = status === 403 ? 'no' : '';
    answer = response(status, body).replace('\r\n', `\r\n${given.map((line) => `${line}\r\n`).join('')}`);
    const connection = await connectRaw(t, ports[listener]!);
    connection.write(`GET / HTTP/1.1\r\nHost: a\r\n${request.map((line) => `${line}\r\n`).join('')}\r\n`);
    const head = await connection.readUntil('\r\n\r\n');
    connection.destroy();
    const outcome: Outcome = {
      status: Number(head.slice(9, 12)),
      asked: lastHead(service, before[0]),
      host: lastHead(host, before[1]),
      client: fieldsOf(head),
    };
    return outcome;
  };
}

besideEnvoy('an allowing response sets fields, then appends, then removes', async (t, program) => {
  const ask = await start(t, program, {
    lists: manager(
      {},
      {
        allowed_upstream_headers: named('x-user', 'set-cookie', 'cookie', 'via'),
        allowed_upstream_headers_to_append: named('x-group', 'accept'),
        allowed_client_headers_on_success: named('x-quota', 'set-cookie', 'vary'),
      },
    ),
    both: manager(
      {},
      { allowed_upstream_headers: named('x-user'), allowed_upstream_headers_to_append: named('x-user') },
    ),
  });
  const host = async (request: string[], given: string[], listener = 'lists') =>
    (await ask(listener, request, given)).host;

  const users = ['x-user: m1', 'x-user: m2'];
  t.same(await host(users, ['x-user: ann']), { host: ['a'], 'x-user': ['ann'] }, 'replaces all lines of the client');
  t.same(await host([], ['x-user: ann', 'X-User: bob']), { host: ['a'], 'x-user': ['bob'] }, 'the last of several');
  t.same(await host(users, ['x-user:']), { host: ['a'], 'x-user': [''] }, 'an empty one too');
  t.same(await host(['cookie: c=3'], ['cookie: a=1', 'cookie: b=2']), { host: ['a'], cookie: ['b=2'] });
  t.same(await host([], ['via: 1', 'via: 2']), { host: ['a'], via: ['1,2'] }, 'single-value fields');

  const groups = ['x-group: g1', 'x-group: g2'];
  t.same(
    await host(groups, ['x-group: g3', 'x-group: g4']),
    { host: ['a'], 'x-group': ['g1', 'g2', 'g3', 'g4'] },
    'appended values follow all lines of the client',
  );
  t.same(await host([], ['x-group: g3']), { host: ['a'], 'x-group': ['g3'] }, 'the client need not send any');
  t.same(await host(['accept: a'], ['accept: b']), { host: ['a'], accept: ['a,b'] });
  t.same(await host(users, ['x-user: ann', 'x-user: bob'], 'both'), { host: ['a'], 'x-user': ['bob', 'ann', 'bob'] });

  const roles = ['x-role: r1', 'X-Role: r2', 'x-old: 1', 'x-stays: 1'];
  t.same(
    await host(roles, [
      'x-envoy-auth-headers-to-remove: x-old',
      'x-envoy-auth-headers-to-remove: X-Role , ,host,:path',
    ]),
    { host: ['a'], 'x-stays': ['1'] },
    'every remove line applies, to every line of the named fields',
  );
  t.same(
    await host([...users, ...groups], ['x-envoy-auth-headers-to-remove: x-user,x-group', 'x-user: a', 'x-group: a']),
    { host: ['a'] },
    'even fields added by the same response',
  );

  const { client } = await ask(
    'lists',
    [],
    ['set-cookie: a=1', 'x-quota: 1', 'set-cookie: b=2', 'x-quota: 2', 'vary: a'],
  );
  t.same(client, { 'set-cookie': ['a=1', 'b=2'], 'x-quota': ['1', '2'], vary: ['a'] }, 'every line reaches the client');
});

besideEnvoy("a denying response is forwarded except for the filter's own headers", async (t, program) => {
  const ask = await start(t, program, {
    every: manager({}),
    lists: manager({}, { allowed_client_headers: named('x-reason') }),
  });
  const given = [
    'set-cookie: a=1',
    'set-cookie: b=2',
    'x-reason: r1',
    'x-reason: r2',
    'host: b',
    'www-authenticate: Basic',
    'WWW-Authenticate: Digest',
    'x-envoy-auth-headers-to-remove: x-role',
    'content-type: a/b',
  ];
  const every = {
    'set-cookie': ['a=1', 'b=2'],
    'x-reason': ['r1', 'r2'],
    'www-authenticate': ['Basic', 'Digest'],
    host: ['b'],
  };
  t.match(await ask('every', [], given, 403), { status: 403, host: {} });
  t.same((await ask('every', [], given, 403)).client, { ...every, 'content-type': ['a/b'] });
  t.same((await ask('every', [], given, 401)).client, every, 'no content-type without a body');
  t.same((await ask('lists', [], given, 401)).client, {
    'x-reason': ['r1', 'r2'],
    'www-authenticate': ['Basic', 'Digest'],
  });
});

besideEnvoy('a request to the service has one line per name', async (t, program) => {
  const ask = await start(t, program, { every: manager({ allowed_headers: EVERY }) });
  const request = [
    'x-role: user',
    'x-role: admin',
    'x-other: 1',
    'X-Role: guest',
    'authorization: a',
    'authorization: b',
    'x-envoy-auth-partial-body: true',
  ];
  t.same((await ask('every', request)).asked, {
    host: ['a'],
    'x-role': ['user,admin,guest'],
    'x-other': ['1'],
    authorization: ['a,b'],
  });
  const { asked } = await ask('every', ['cookie: a=1', 'cookie: b=2']);
  // With Envoy the service reads a cookie `a` with the value "1,b=2", and the host reads two cookies.
  t.same(asked['cookie'], [program.command === undefined ? 'a=1; b=2' : 'a=1,b=2']);
});
