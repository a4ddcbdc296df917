// Valid resources that are rejected because of a conflict: another owner has their address, domain or scope key. They are
// applied when the conflict is gone, though a delta server does not send them again.

import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import t from 'tap';
import { type ControlPlane, startControlPlane, type XdsProtocol } from '../harness/control-plane.js';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  freePort,
  httpListener,
  httpRequest,
  startBaton,
  type Teardown,
  takePort,
  waitFor,
  waitForLog,
} from '../harness/index.js';

const WORKERS = 2;
const ADS = { ads: {}, resource_api_version: 'V3' };

const host = (name: string, domain: string): Config => ({
  name,
  domains: [domain],
  routes: [{ match: { prefix: '/' }, direct_response: { status: 200, body: { inline_string: name } } }],
});

const saying = (text: string): Config => ({ route_config: { name: text, virtual_hosts: [host(text, '*')] } });

function start(t: Teardown, plane: ControlPlane, protocol: XdsProtocol = 'delta'): Promise<BatonProcess> {
  return startBaton(t, {
    args: ['-l', 'info', '--drain-time-s', '1', '--concurrency', `${WORKERS}`],
    config: bootstrap({ listeners: [], clusters: [plane.cluster()], extra: plane.ads(protocol) }),
  });
}

async function listenersOf(baton: BatonProcess): Promise<Map<string, Config>> {
  const { body } = await baton.admin('/config_dump?resource=dynamic_listeners');
  const { configs = [] } = JSON.parse(body) as { readonly configs?: readonly Config[] };
  return new Map(configs.map((each) => [String(each['name']), each]));
}

t.test('a listener whose address another process uses is added when the address is free', async (t) => {
  const { release, port } = await takePort(t);
  const plane = await startControlPlane(t);
  plane.set('cluster', []);
  plane.set('listener', [httpListener('front', port, saying('front'))]);
  const baton = await start(t, plane);
  t.match(
    (await plane.waitForNack('listener')).error,
    `front: cannot listen on 127.0.0.1:${port}: the address is in use by another process; the listener is used as soon as the address is free`,
  );
  t.match((await listenersOf(baton)).get('front'), {
    active_state: undefined,
    client_status: 'NACKED',
    error_state: { version_info: '1', details: /is in use by another process/ },
  });

  plane.set('listener', [httpListener('front', port, saying('front')), httpListener('side', 0, saying('side'))]);
  await waitFor(() => baton.listenerPort('side').catch(() => undefined), { what: 'the other listener' });
  const states = await listenersOf(baton);
  t.match(states.get('front'), { client_status: 'NACKED' }, 'an update of another listener changes nothing here');
  t.match(states.get('side'), { client_status: 'ACKED' });

  release();
  const answered = () =>
    httpRequest(port).then(
      ({ body }) => body === 'front',
      () => false,
    );
  await waitFor(answered, { what: 'the listener' });
  const front = (await listenersOf(baton)).get('front');
  t.match(front, { active_state: { version_info: '1' }, client_status: 'ACKED' });
  t.notOk(front?.['error_state']);
  const stats = ['listener_create_failure', 'listener_added', 'lds.update_rejected', 'lds.update_success'];
  t.same(await Promise.all(stats.map((name) => baton.stat(`listener_manager.${name}`))), [1, 2, 1, 1]);
  t.match(baton.stderr, "lds: add/update listener 'front'");

  // The server of the next stream does not know that it is in use, and may report it as removed.
  plane.stop();
  plane.set('listener', []);
  await plane.start();
  await waitFor(async () => !(await answered()), { what: 'the end of the listener' });
  await baton.stop();
});

t.test(
  'a listener whose address is taken while the server waits for its routes is added when the address is free',
  async (t) => {
    const port = await freePort();
    const plane = await startControlPlane(t);
    plane.set('cluster', []);
    plane.set('listener', [httpListener('front', port, { rds: { route_config_name: 'routes', config_source: ADS } })]);
    const baton = await startBaton(t, {
      args: ['-l', 'info'],
      config: bootstrap({ listeners: [], clusters: [plane.cluster()], extra: plane.ads('delta') }),
      wait: 'admin',
    });
    await waitForLog(baton, "lds: add/update listener 'front'");
    const { release } = await takePort(t, port);
    plane.set('route', [{ name: 'routes', virtual_hosts: [host('front', '*')] }]);
    await waitForLog(baton, /listener 'front' cannot be used: .* in use/);
    const active = () => baton.stat('listener_manager.total_listeners_active');
    t.equal(await active(), 0, 'it is not added');
    t.equal((await baton.admin('/listeners')).body, '');
    release();
    await waitFor(async () => (await active()) === 1, { what: 'the listener' });
    t.match(await httpRequest(port), { body: 'front' });
    await baton.stop();
  },
);

t.test('listeners are added when workers have descriptors for them again', async (t) => {
  const plane = await startControlPlane(t);
  plane.set('cluster', []);
  plane.set('listener', [httpListener('first', 0, saying('first'))]);
  const baton = await start(t, plane);
  await baton.listenerPort('first');
  const limit = (count: number) => execFileSync('prlimit', [`--pid=${baton.pid}`, `--nofile=${count}:`]);
  const openFiles = () => readdirSync(`/proc/${baton.pid}/fd`).length;
  const names = Array.from({ length: 30 }, (_, index) => `late ${index}`);
  // The primary has a socket for each listener and worker, and so does the worker. Threads may be starting or exiting, with a
  // dozen descriptors each.
  limit(openFiles() + 45 * WORKERS);
  plane.set(
    'listener',
    names.map((name) => httpListener(name, 0, saying(name))),
  );
  const areShort = () => {
    // If the primary had no descriptor for the next one, it gets as many as it needs: then the workers have none.
    if (/cannot listen on \S+ socket: too many open files/.test(baton.stderr)) limit(openFiles() + WORKERS + 1);
    return /cannot be built: addListener: too many open files\n/.test(baton.stderr);
  };
  await waitFor(areShort, { what: 'workers without descriptors' });
  // While other listeners are tried there is no descriptor for a connection to the admin interface either: it is reset.
  const refused = async () =>
    [...(await listenersOf(baton)).values()].find((each) => each['error_state'] !== undefined);
  t.match(await waitFor(refused, { what: 'a rejected listener' }), {
    client_status: 'NACKED',
    error_state: { details: /too many open files; the listener is used as soon as there are descriptors$/ },
  });

  limit(1000);
  for (const name of names) {
    const port = await waitFor(() => baton.listenerPort(name).catch(() => undefined), { what: `listener ${name}` });
    t.equal((await httpRequest(port)).body, name);
  }
  t.same(
    [...(await listenersOf(baton)).values()].filter((each) => each['error_state'] !== undefined),
    [],
  );
  await baton.stop();
});

for (const protocol of ['sotw', 'delta'] as XdsProtocol[]) {
  t.test(`${protocol}: a listener that waits for its address and is removed is not added`, async (t) => {
    const { release, port } = await takePort(t);
    const plane = await startControlPlane(t);
    plane.set('cluster', []);
    plane.set('listener', [
      httpListener('front', port, saying('front')),
      httpListener('behind', port, saying('behind')),
    ]);
    const baton = await start(t, plane, protocol);
    await plane.waitForNack('listener');
    plane.set('listener', [httpListener('behind', port, saying('behind'))]);
    await waitFor(async () => !(await listenersOf(baton)).has('front'), { what: 'it is forgotten' });

    release();
    const answered = () =>
      httpRequest(port).then(
        ({ body }) => body,
        () => '',
      );
    await waitFor(async () => (await answered()) === 'behind', { what: 'the listener behind it' });
    t.same([...(await listenersOf(baton)).keys()], ['behind']);
    await baton.stop();
  });
}

for (const protocol of ['sotw', 'delta'] as XdsProtocol[]) {
  t.test(`${protocol}: a listener that waits for its address expires with its TTL`, async (t) => {
    const plane = await startControlPlane(t);
    plane.set('cluster', []);
    const waiting = async (name: string, ttl: string) => {
      const { release, port } = await takePort(t);
      plane.set('listener', [httpListener(name, port, saying(name))], { ttl });
      return { release, port };
    };
    const { release, port } = await waiting('front', '60s');
    const baton = await start(t, plane, protocol);
    await plane.waitForNack('listener');
    if (protocol === 'sotw') {
      // A resource that is not named is removed; a heartbeat names it.
      const { typeUrl: type_url } = plane.requests.find(({ type }) => type === 'listener')!;
      const beat = { '@type': 'type.googleapis.com/envoy.service.discovery.v3.Resource', name: 'front', ttl: '60s' };
      const side = { '@type': type_url, ...httpListener('side', 0, saying('side')) };
      plane.respond('listener', 'sotw', { version_info: '2', nonce: 'mixed', type_url, resources: [beat, side] });
      await plane.waitFor('an answer', ({ nonce }) => nonce === 'mixed');
      t.match((await listenersOf(baton)).get('front'), { client_status: 'NACKED' });
    }
    release();
    await waitFor(
      () =>
        httpRequest(port).then(
          () => true,
          () => false,
        ),
      { what: 'the listener' },
    );
    plane.heartbeat('listener', ['front'], '0.2s');
    await waitFor(async () => !(await listenersOf(baton)).has('front'), { what: 'its removal' });

    const next = await waiting('next', '0.2s');
    await waitFor(async () => /next: cannot listen/.test(baton.stderr), { what: 'the rejection of the next one' });
    await waitFor(async () => !(await listenersOf(baton)).has('next'), {
      what: 'the removal of one that was never added',
    });
    next.release();
    await baton.stop();
  });
}

t.test('a listener whose address another listener uses is added when that is removed', async (t) => {
  const port = await freePort();
  const plane = await startControlPlane(t);
  plane.set('cluster', []);
  const second = httpListener('second', port, saying('second'));
  plane.set('listener', [httpListener('first', port, saying('first'))]);
  const baton = await start(t, plane);
  plane.set('listener', [httpListener('first', port, saying('first')), second]);
  t.match((await plane.waitForNack('listener')).error, /^second: .*'second' has duplicate address/);
  t.equal((await httpRequest(port)).body, 'first');

  plane.set('listener', [second]);
  await waitFor(
    () =>
      httpRequest(port).then(
        ({ body }) => body === 'second',
        () => false,
      ),
    { what: 'the second' },
  );
  t.notOk((await listenersOf(baton)).get('second')?.['error_state']);
  await baton.stop();
});

t.test('a virtual host whose domain another virtual host has is added when that is removed', async (t) => {
  const plane = await startControlPlane(t);
  plane.set('cluster', []);
  const routes = (...own: Config[]) => [{ name: 'routes', virtual_hosts: own, vhds: { config_source: ADS } }];
  const one = host('routes/one', 'a.com');
  const two = host('routes/two', 'a.com');
  const three = host('routes/three', 'own.com');
  plane.set('route', routes(host('own', 'own.com')));
  plane.set('virtual-host', [one]);
  plane.set('listener', [httpListener('in', 0, { rds: { route_config_name: 'routes', config_source: ADS } })]);
  const baton = await start(t, plane);
  const port = await baton.listenerPort('in');
  const to = async (host: string) => (await httpRequest(port, '/', { headers: { host } })).body;
  t.equal(await to('a.com'), 'routes/one');

  plane.set('virtual-host', [one, two, three]);
  t.match((await plane.waitForNack('virtual-host')).error, /'a\.com'.*\n.*'own\.com'/);
  t.same([await to('a.com'), await to('own.com')], ['routes/one', 'own']);
  plane.set('virtual-host', [two, three]);
  await waitFor(async () => (await to('a.com')) === 'routes/two', { what: 'the rejected one' });
  t.equal(await to('own.com'), 'own');
  plane.set('route', routes());
  await waitFor(async () => (await to('own.com')) === 'routes/three', { what: 'the other one' });
  plane.set('virtual-host', []);
  await waitFor(async () => (await to('own.com')) === '', { what: 'their removal' });
  t.equal(await to('a.com'), '');
  await baton.stop();
});

t.test('a scope whose key another scope has is added when that is removed', async (t) => {
  const plane = await startControlPlane(t);
  plane.set('cluster', []);
  const scope = (name: string) => ({
    name,
    key: { fragments: [{ string_key: 'x' }] },
    route_configuration: { name, virtual_hosts: [host(name, '*')] },
  });
  plane.set('scoped-route', [scope('one')]);
  const scoped_routes = {
    name: 'scopes',
    scope_key_builder: { fragments: [{ header_value_extractor: { name: 'tenant', index: 0 } }] },
    scoped_rds: { scoped_rds_config_source: ADS },
  };
  plane.set('listener', [httpListener('in', 0, { scoped_routes })]);
  const baton = await start(t, plane);
  const port = await baton.listenerPort('in');
  const got = async () => (await httpRequest(port, '/', { headers: { tenant: 'x' } })).body;
  t.equal(await got(), 'one');
  plane.set('scoped-route', [scope('one'), scope('two')]);
  t.match((await plane.waitForNack('scoped-route')).error, "two: its key is that of the scope 'one'");
  t.equal(await got(), 'one');
  plane.set('scoped-route', [scope('two')]);
  await waitFor(async () => (await got()) === 'two', { what: 'the rejected scope' });
  await baton.stop();
});
