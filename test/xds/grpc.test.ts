// Streams to management servers: subscriptions, ACKs and NACKs in both protocols, and servers that misbehave or die.

import protobuf from 'protobufjs/minimal.js';
import t from 'tap';
import { Random } from '../../src/common/random.js';
import { checkManagementService } from '../../src/config/checks/services/grpc-service.js';
import type { ConfigSource } from '../../src/config/generated/api.js';
import { BREAKS_A_LINE } from '../../src/config/schema/line-rules.js';
import { loadMessages } from '../../src/config/schema/messages.js';
import { ClusterStats } from '../../src/stats/layouts/cluster.js';
import { BackOff } from '../../src/xds/grpc/back-off.js';
import { StateOfTheWorld } from '../../src/xds/grpc/protocols/state-of-the-world.js';
import { TokenBucket } from '../../src/xds/grpc/token-bucket.js';
import { captureLog } from '../admin/capture-log.js';
import { startControlPlane, type XdsProtocol, type XdsRequest } from '../e2e/harness/control-plane.js';
import { startTcpUpstream, waitFor } from '../e2e/harness/index.js';
import { startSubscriber } from './grpc-subscriber.js';

const ADS: ConfigSource = { ads: {} };

const cluster = (name: string, timeout = 1) => ({ name, connect_timeout: `${timeout}s` });
const endpoints = (name: string, port = 80) => ({
  cluster_name: name,
  endpoints: [
    {
      lb_endpoints: [{ endpoint: { address: { socket_address: { address: '127.0.0.1', port_value: port } } } }],
    },
  ],
});
const names = (request: XdsRequest) => [...request.names].sort();

for (const [protocol, attempts] of [
  ['sotw', 2],
  ['delta', 3],
] as [XdsProtocol, number][]) {
  t.test(`${protocol}: a refused update counts as in Envoy`, async (t) => {
    const plane = await startControlPlane(t);
    const subscriber = startSubscriber(t, plane);
    plane.set('cluster', [cluster('a'), cluster('bad-one')]);
    subscriber.subscribe({ source: plane.source(protocol) as ConfigSource, type: 'cluster', statPrefix: 'cds.' });
    await plane.waitForNack('cluster');
    t.equal(subscriber.store.value('cds.update_rejected'), 1);
    t.equal(subscriber.store.value('cds.update_attempt'), attempts);
  });
}

for (const protocol of ['sotw', 'delta'] as XdsProtocol[]) {
  t.test(`${protocol}: a single subscription`, async (t) => {
    const plane = await startControlPlane(t);
    const subscriber = startSubscriber(t, plane);
    plane.set('cluster', [cluster('a'), cluster('b')]);
    const source = plane.source(protocol) as ConfigSource;
    const seen = subscriber.subscribe({ source, type: 'cluster', statPrefix: 'cluster_manager.cds.' });
    await seen.has('b');
    const ack = await plane.waitForAck('cluster');
    const [first] = plane.requests;
    t.match(first, {
      method: `/envoy.service.cluster.v3.ClusterDiscoveryService/${protocol === 'sotw' ? 'Stream' : 'Delta'}Clusters`,
      names: [],
      nonce: '',
      node: { id: 'node-1' },
    });
    t.same(first!.node!['client_features'], [
      'xds.config.supports-resource-ttl',
      'xds.config.resource-in-sotw',
      'xds.config.supports-resource-in-sotw',
    ]);
    t.match(first!.node, { dynamic_parameters: { xds: { params: { zone: 'a' } } } });
    t.ok(ack.node, 'each request contains the node');
    if (protocol === 'sotw') t.equal(ack.version, '1');
    t.equal(seen.updates[0]!.isComplete, protocol === 'sotw');

    plane.set('cluster', [cluster('b', 2), cluster('c')]);
    await seen.has('c');
    await plane.waitForAck('cluster');
    const update = seen.updates.at(-1)!;
    t.same(
      update.resources.map(({ name }) => name),
      ['b', 'c'],
    );
    t.same(update.removed, protocol === 'sotw' ? [] : ['a']);

    t.equal(subscriber.store.value('cluster_manager.cds.update_success'), 2);
    t.equal(subscriber.store.value('cluster_manager.cds.update_rejected'), 0);
    t.equal(subscriber.store.text('cluster_manager.cds.version_text'), '2');
    t.ok(subscriber.store.value('cluster_manager.cds.version')! > 0);
    t.ok(Math.abs(subscriber.store.value('cluster_manager.cds.update_time')! - Date.now()) < 60_000);
    t.equal(subscriber.store.text('cluster_manager.cds.control_plane.identifier'), 'test-plane');
    await subscriber.waitForStat('cluster_manager.cds.control_plane.connected_state', 1);

    seen.subscription.close();
    await waitFor(() => plane.streams === 0, { what: 'the stream ends' });
    t.same(subscriber.store.scopesUnder('cluster_manager.cds.'), []);
    t.same(subscriber.store.scopesUnder('cluster_manager.cds.control_plane.'), []);
    t.same(subscriber.failures, []);
  });

  t.test(`${protocol}: invalid resources are refused by name, the others are used`, async (t) => {
    const plane = await startControlPlane(t);
    const subscriber = startSubscriber(t, plane);
    plane.set('cluster', [cluster('a')]);
    const seen = subscriber.subscribe({ source: plane.source(protocol) as ConfigSource, type: 'cluster' });
    await plane.waitForAck('cluster');
    seen.rejects.set('b', 'there is no room for b');
    plane.set('cluster', [cluster('a'), cluster('bad-one'), cluster('b'), cluster('c')]);
    const nack = await plane.waitForNack('cluster');
    t.equal(nack.errorCode, 13);
    t.equal(nack.error, 'bad-one: bad-one is no good\nb: there is no room for b');
    if (protocol === 'sotw') t.equal(nack.version, '1', 'the version that was accepted last');
    const update = seen.updates.at(-1)!;
    t.ok(update.resources.some(({ name }) => name === 'c'));
    t.match(update.refused, [{ name: 'bad-one', details: 'bad-one is no good' }]);
    t.equal(subscriber.store.value('cluster.update_rejected'), 1);
    t.equal(subscriber.store.value('cluster.update_success'), 1);
    t.equal(subscriber.store.text('cluster.version_text'), '1');

    // A new stream begins with the resources in use.
    plane.endStreams();
    const again = await plane.waitFor('another stream', ({ stream }) => stream === 1);
    if (protocol === 'sotw') t.equal(again.version, '1');
    else t.same(again.initialVersions, { a: '1', c: '2' });
    await subscriber.waitForStat('cluster.update_failure', 1);

    seen.rejects.clear();
    plane.set('cluster', [cluster('b', 3)]);
    await plane.waitForAck('cluster');
    t.equal(seen.updates.at(-1)!.resources.length, 1);
  });

  t.test(`${protocol}: on the aggregated stream subscriptions share requests and get their resources`, async (t) => {
    const plane = await startControlPlane(t);
    const subscriber = startSubscriber(t, plane, plane.api(protocol, { set_node_on_first_message_only: true }));
    plane.set('cluster', [cluster('a'), cluster('b'), cluster('c')]);
    plane.set('endpoints', [endpoints('a'), endpoints('b'), endpoints('c')]);
    const clusters = subscriber.subscribe({ source: ADS, type: 'cluster' });
    await clusters.has('c');
    const ofA = subscriber.subscribe({
      source: ADS,
      type: 'endpoints',
      names: new Set(['a']),
      statPrefix: 'cluster.a.',
    });
    const ofB = subscriber.subscribe({
      source: ADS,
      type: 'endpoints',
      names: new Set(['b']),
      statPrefix: 'cluster.b.',
    });
    await Promise.all([ofA.has('a'), ofB.has('b'), plane.waitForAck('endpoints')]);
    t.equal(plane.streamCount, 1);
    const asked = plane.requests.filter(({ type, nonce }) => type === 'endpoints' && nonce === '');
    t.same(asked.map(names), [['a', 'b']], 'one request for both');
    t.same(plane.requests.map(({ node }) => node !== undefined).slice(0, 4), [true, false, false, false]);
    t.ok([...ofA.updates, ...ofB.updates].every(({ isComplete, resources }) => !isComplete && resources.length === 1));
    await subscriber.waitForStat('control_plane.connected_state', 1);
    t.equal(subscriber.store.value('cluster.a.update_success'), 1);
    t.equal(subscriber.store.value('cluster.a.update_rejected'), 0);

    // Only subscribers of a name are notified, and only these can reject it.
    ofB.rejects.set('b', 'not now');
    plane.set('endpoints', [endpoints('a'), endpoints('b', 81), endpoints('c')]);
    const nack = await plane.waitForNack('endpoints');
    t.equal(nack.error, 'b: not now');
    if (protocol === 'delta') t.equal(ofA.updates.length, 1);
    t.equal(subscriber.store.value('cluster.b.update_rejected'), 1);

    // Requested names follow the subscriptions; a resource that another one has is delivered at once.
    const again = subscriber.subscribe({
      source: ADS,
      type: 'endpoints',
      names: new Set(['a']),
      statPrefix: 'cluster.a.',
    });
    ofA.subscription.close();
    ofB.subscription.setNames(new Set(['c']));
    await Promise.all([again.has('a'), ofB.has('c')]);
    const last = await plane.waitFor('c and not b', (request) => names(request).includes('c'));
    if (protocol === 'sotw') t.same(names(last), ['a', 'c']);
    else t.match(last, { names: ['c'], unsubscribed: ['b'] });
    const before = ofA.updates.length;
    plane.set('endpoints', [endpoints('a', 82), endpoints('c', 82)]);
    await Promise.all([again.has('a', '3'), ofB.has('c', '3')]);
    t.equal(ofA.updates.length, before, 'a closed subscription is not notified');
    t.same(subscriber.failures, []);
  });

  t.test(`${protocol}: a server that dies, returns and delays its responses`, async (t) => {
    const plane = await startControlPlane(t);
    const subscriber = startSubscriber(t, plane, plane.api(protocol));
    plane.set('route', [{ name: 'r' }]);
    const seen = subscriber.subscribe({ source: ADS, type: 'route', names: new Set(['r', 's']), statPrefix: 'rds.' });
    await plane.waitForAck('route');
    plane.stop();
    await waitFor(() => subscriber.store.value('rds.update_failure')! >= 2, { what: 'tries that fail' });
    await subscriber.waitForStat('control_plane.connected_state', 0);
    const count = seen.updates.length;
    plane.hold();
    plane.set('route', [{ name: 'r' }, { name: 's' }]);
    await plane.start();
    const first = await plane.waitFor('another stream', ({ stream }) => stream === 1);
    t.same(names(first), ['r', 's']);
    t.equal(first.nonce, '');
    if (protocol === 'sotw') t.equal(first.version, '1');
    else t.same(first.initialVersions, { r: '1' });
    t.equal(seen.updates.length, count, 'nothing has changed meanwhile');
    plane.release();
    await seen.has('s', '2');
    await plane.waitForAck('route');
    await subscriber.waitForStat('control_plane.connected_state', 1);
  });

  t.test(`${protocol}: garbage ends the stream`, async (t) => {
    const plane = await startControlPlane(t);
    const subscriber = startSubscriber(t, plane);
    const api = { ...plane.api(protocol) };
    api['grpc_services'] = [{ envoy_grpc: { cluster_name: 'control-plane', max_receive_message_length: 100_000 } }];
    plane.set('cluster', [cluster('a')]);
    const seen = subscriber.subscribe({ source: { api_config_source: api } as ConfigSource, type: 'cluster' });
    await plane.waitForAck('cluster');

    plane.sendBytes('cluster', Buffer.from('\xff\xff\xff this is not a message', 'latin1'));
    await plane.waitFor('a stream after garbage', ({ stream }) => stream === 1);
    await subscriber.waitForStat('cluster.update_failure', 1);

    const route = 'type.googleapis.com/envoy.config.route.v3.RouteConfiguration';
    await waitFor(() => plane.streams === 1, { what: 'one stream' });
    plane.respond('cluster', protocol, { nonce: 'stray/1', type_url: route });
    const stray = await plane.waitFor('a refusal', ({ nonce }) => nonce === 'stray/1');
    t.match(stray.error, /^a response of type '.*RouteConfiguration' where '.*Cluster' was asked for$/);

    const any = { '@type': route, name: 'r' };
    const url = 'type.googleapis.com/envoy.config.cluster.v3.Cluster';
    const body = protocol === 'sotw' ? [any] : [{ name: 'r', resource: any }];
    plane.respond('cluster', protocol, { nonce: 'stray/2', type_url: url, resources: body });
    const mixed = await plane.waitFor('a refusal', ({ nonce }) => nonce === 'stray/2');
    t.equal(mixed.error, 'a nameless one is no good');
    await subscriber.waitForStat('cluster.update_rejected', 2);

    plane.respond('cluster', protocol, { nonce: 'x'.repeat(200_000), type_url: url });
    await plane.waitFor('a stream after what is too long', ({ stream }) => stream === 2);
    plane.set('cluster', [cluster('b')]);
    await seen.has('b');
    t.same(subscriber.failures, []);
  });

  t.test(`${protocol}: a response with a line end in its version or sender is refused`, async (t) => {
    const plane = await startControlPlane(t);
    const subscriber = startSubscriber(t, plane);
    plane.set('cluster', [cluster('a')]);
    const source = plane.source(protocol) as ConfigSource;
    const seen = subscriber.subscribe({ source, type: 'cluster' });
    await plane.waitForAck('cluster');
    const url = 'type.googleapis.com/envoy.config.cluster.v3.Cluster';
    const field = protocol === 'sotw' ? 'version_info' : 'system_version_info';
    const respond = async (nonce: string, more: object) => {
      plane.respond('cluster', protocol, { nonce, type_url: url, ...more });
      return (await plane.waitFor(`the answer to ${nonce}`, (request) => request.nonce === nonce)).error;
    };
    for (const [index, end] of ['\n', '\r', '\0'].entries()) {
      const refused = await respond(`lines/${index}`, { [field]: `1${end}forged::line` });
      t.equal(refused, `the version of the response: ${BREAKS_A_LINE}`);
    }
    const sender = await respond('sender/1', { [field]: '2', control_plane: { identifier: 'me\nforged: 1' } });
    t.equal(sender, `control_plane.identifier: ${BREAKS_A_LINE}`);
    t.equal(subscriber.store.value('cluster.update_rejected'), 4);
    t.equal(subscriber.store.text('cluster.control_plane.identifier'), 'test-plane');
    t.equal(seen.updates.length, 1, 'resources in use stay');
    t.equal(await respond('right/1', { [field]: 'three' }), undefined, 'and the next response counts');
    await waitFor(() => subscriber.store.text('cluster.version_text') === 'three', { what: 'its version' });
  });

  t.test(`${protocol}: subscribers proceed when the first response is refused as a whole`, async (t) => {
    const plane = await startControlPlane(t);
    const subscriber = startSubscriber(t, plane);
    plane.hold();
    const source = { ...(plane.source(protocol) as ConfigSource), initial_fetch_timeout: '0s' };
    const seen = subscriber.subscribe({ source, type: 'cluster' });
    await plane.waitFor('a request', ({ type }) => type === 'cluster');
    const route = 'type.googleapis.com/envoy.config.route.v3.RouteConfiguration';
    for (const nonce of ['stray/1', 'stray/2']) plane.respond('cluster', protocol, { nonce, type_url: route });
    await plane.waitFor('the second refusal', ({ nonce }) => nonce === 'stray/2');
    t.equal(seen.timeouts, 1, 'and is notified once');
    t.equal(subscriber.store.value('cluster.init_fetch_timeout'), 0);
    t.ok(plane.requests.find(({ nonce }) => nonce === 'stray/1')?.error, 'both are refused');
  });

  t.test(
    `${protocol}: a name that is subscribed again before the unsubscription was sent keeps its resource`,
    async (t) => {
      const plane = await startControlPlane(t);
      const limits = { rate_limit_settings: { max_tokens: 2, fill_rate: 0.001 } };
      const subscriber = startSubscriber(t, plane, plane.api(protocol, limits));
      plane.set('endpoints', [endpoints('a')]);
      const options = { source: ADS, type: 'endpoints', names: new Set(['a']) } as const;
      const first = subscriber.subscribe(options);
      await first.has('a');
      await plane.waitForAck('endpoints');
      first.subscription.close();
      await subscriber.waitForStat('control_plane.pending_requests', 1);
      await subscriber.subscribe({ ...options, statPrefix: 'again.' }).has('a');
      t.equal(plane.requests.length, 2, 'nothing more was sent');
    },
  );

  t.test(`${protocol}: resources with a TTL live as long as heartbeats arrive`, async (t) => {
    const plane = await startControlPlane(t);
    const subscriber = startSubscriber(t, plane, plane.api(protocol));
    plane.set('listener', [{ name: 'l' }], { ttl: '3600s' });
    const seen = subscriber.subscribe({ source: ADS, type: 'listener' });
    await plane.waitForAck('listener');
    plane.heartbeat('listener', ['l'], '0.05s');
    await seen.loses('l');
    t.same(
      seen.updates.map(({ resources, removed }) => [resources.length, removed]),
      [
        [1, []],
        [0, ['l']],
      ],
      'a heartbeat is not an update',
    );
    plane.set('listener', [{ name: 'l' }]);
    await plane.waitForAck('listener');
    t.equal(seen.updates.length, 3);
  });
}

t.test('sotw: unsubscribed resources are available when all are subscribed again', async (t) => {
  const plane = await startControlPlane(t);
  const subscriber = startSubscriber(t, plane, plane.api('sotw'));
  const scope = (name: string) => ({ name, route_configuration_name: 'r', key: { fragments: [{ string_key: name }] } });
  const subscribe = () => subscriber.subscribe({ source: ADS, type: 'scoped-route' });
  plane.set('scoped-route', [scope('a'), scope('b')]);
  const before = subscribe();
  await before.has('b');
  await plane.waitForAck('scoped-route');
  before.subscription.close();
  // A request for that would equal the first one: the server continues to send everything, and repeats nothing.
  const other = subscriber.subscribe({ source: ADS, type: 'cluster' });
  await plane.waitFor('the next request', ({ type }) => type === 'cluster');
  const again = subscribe();
  await again.has('b');
  again.subscription.close();
  plane.set('scoped-route', [scope('c')]);
  await plane.waitForAck('scoped-route');
  const last = subscribe();
  await last.has('c');
  t.same(
    last.updates.map(({ resources }) => resources.map(({ name }) => name)),
    [['c']],
  );
  last.subscription.close();

  plane.set('cluster', [cluster('x')]);
  await other.has('x');
  plane.endStreams();
  const isLater = (request: XdsRequest) => request.stream === 1 && request.type === 'cluster';
  await plane.waitFor('the next stream', isLater);
  const fresh = subscribe();
  await fresh.has('c');
  const asked = plane.requests.filter(({ stream, type }) => stream === 1 && type === 'scoped-route');
  t.match(asked[0], { nonce: '', names: [] }, 'the state of the previous stream is forgotten');
});

for (const protocol of ['sotw', 'delta'] as XdsProtocol[]) {
  t.test(`${protocol}: changes during a response on a stream that ends arrive on the next one`, async (t) => {
    const plane = await startControlPlane(t);
    const subscriber = startSubscriber(t, plane, plane.api(protocol));
    plane.set('cluster', [cluster('a')]);
    const seen = subscriber.subscribe({ source: ADS, type: 'cluster' });
    await plane.waitForAck('cluster');
    plane.set('cluster', [cluster('b')]);
    plane.endStreams();
    plane.set('cluster', [cluster('c')]);
    await plane.waitFor('another stream', ({ stream }) => stream === 1);
    await seen.has('c');
  });
}

t.test('reconnects back off when the server ends each connection at once', async (t) => {
  const server = await startTcpUpstream(t, (socket) => {
    // SETTINGS, and a GOAWAY that reports no processed stream.
    socket.write(Buffer.from('000000040000000000' + '0000080700000000000000000000000000', 'hex'));
  });
  const retry_back_off = { base_interval: '0.2s', max_interval: '0.2s' };
  const services = [{ envoy_grpc: { cluster_name: 'control-plane', retry_policy: { retry_back_off } } }];
  const api = { api_type: 'GRPC', transport_api_version: 'V3', grpc_services: services };
  const subscriber = startSubscriber(t, server, api);
  subscriber.subscribe({ source: ADS, type: 'cluster' });
  const tries = () => subscriber.store.value('cluster.update_attempt')!;
  await waitFor(() => tries() >= 6, { what: 'tries' });
  t.ok(server.accepted() <= 2 * tries(), `${server.accepted()} connections`);
});

t.test('delta: a response that contradicts itself about a name is refused as a whole', async (t) => {
  const plane = await startControlPlane(t);
  const subscriber = startSubscriber(t, plane, plane.api('delta'));
  plane.set('cluster', [cluster('a')]);
  const seen = subscriber.subscribe({ source: ADS, type: 'cluster' });
  await plane.waitForAck('cluster');
  const type_url = 'type.googleapis.com/envoy.config.cluster.v3.Cluster';
  const sent = (name: string, timeout: number) => {
    return { name, version: `${timeout}`, resource: { '@type': type_url, ...cluster(name, timeout) } };
  };
  const respond = async (nonce: string, resources: object[], removed_resources: string[]) => {
    plane.respond('cluster', 'delta', { nonce, type_url, resources, removed_resources });
    return (await plane.waitFor(`the answer to ${nonce}`, (request) => request.nonce === nonce)).error;
  };
  t.equal(
    await respond('twice/1', [sent('a', 2), sent('b', 2), sent('a', 3)], []),
    'duplicate name a found among added/updated resources',
  );
  t.equal(
    await respond('both/1', [sent('a', 2), sent('b', 2)], ['a']),
    'duplicate name a found in the union of added+removed resources',
  );
  t.equal(seen.updates.length, 1, 'nothing of them is used');
  t.equal(subscriber.store.value('cluster.update_rejected'), 2);
  t.equal(await respond('right/1', [sent('b', 2)], ['a']), undefined);
  t.match(seen.updates.at(-1), { resources: [{ name: 'b' }], removed: ['a'] });
});

t.test('delta: a refused resource is removed when the server of the next stream does not have it', async (t) => {
  const plane = await startControlPlane(t);
  const subscriber = startSubscriber(t, plane);
  plane.set('cluster', [cluster('a'), cluster('bad-one'), cluster('bad-two'), cluster('b')]);
  const seen = subscriber.subscribe({ source: plane.source('delta') as ConfigSource, type: 'cluster' });
  seen.rejects.set('b', 'there is no room for b');
  await plane.waitForNack('cluster');
  plane.stop();
  plane.set('cluster', [cluster('a'), cluster('bad-two')]);
  await plane.start();
  await waitFor(() => seen.updates.length > 1, { what: 'the next update' });
  t.match(seen.updates.at(-1), { refused: [{ name: 'bad-two' }] });
  t.same(seen.updates.at(-1)!.removed, ['bad-one', 'b']);
});

t.test('delta: a refused resource is forgotten when it is unsubscribed', async (t) => {
  const plane = await startControlPlane(t);
  const subscriber = startSubscriber(t, plane, plane.api('delta'));
  plane.set('cluster', [cluster('a'), cluster('bad-one')]);
  const first = subscriber.subscribe({ source: ADS, type: 'cluster' });
  await plane.waitForNack('cluster');
  subscriber.subscribe({ source: ADS, type: 'listener' });
  first.subscription.close();
  await plane.waitFor('nobody wants clusters', ({ unsubscribed }) => unsubscribed?.includes('*') ?? false);
  plane.stop();
  plane.set('cluster', [cluster('a')]);
  await plane.start();
  await plane.waitFor('another stream', ({ stream }) => stream === 1);
  const later = subscriber.subscribe({ source: ADS, type: 'cluster', statPrefix: 'later.' });
  await later.has('a');
  t.same(later.updates[0]!.removed, []);
});

t.test('delta: a name that is unsubscribed and subscribed again in one turn is requested again', async (t) => {
  const plane = await startControlPlane(t);
  plane.set('cluster', []);
  const subscriber = startSubscriber(t, plane);
  const names = new Set(['missing', 'other']);
  const seen = subscriber.subscribe({ source: plane.source('delta') as ConfigSource, type: 'cluster', names });
  const removals = () => seen.updates.flatMap(({ removed }) => removed).filter((name) => name === 'missing').length;
  await waitFor(() => removals() === 1, { what: 'the first answer' });
  seen.subscription.setNames(new Set(['other']));
  seen.subscription.setNames(names);
  await waitFor(() => removals() === 2, { what: 'another answer' });
  const last = plane.requests.findLast(({ names: each }) => each.length > 0)!;
  t.strictSame([last.names, last.unsubscribed], [['missing'], []]);
});

t.test('known resources stay when a response contains an unreadable name', async (t) => {
  const plane = await startControlPlane(t);
  const subscriber = startSubscriber(t, plane, plane.api());
  plane.set('cluster', [cluster('a'), cluster('b')]);
  const first = subscriber.subscribe({ source: ADS, type: 'cluster' });
  await first.has('b');
  plane.set('cluster', [cluster('b'), cluster('')]);
  await plane.waitForNack('cluster');
  const later = subscriber.subscribe({ source: ADS, type: 'cluster', statPrefix: 'later.' });
  await Promise.all([later.has('a'), later.has('b')]);
});

t.test('initial_fetch_timeout is reported once, and resources may still arrive', async (t) => {
  const plane = await startControlPlane(t);
  const subscriber = startSubscriber(t, plane, plane.api());
  plane.hold();
  plane.set('cluster', [cluster('a')]);
  const source = { ads: {}, initial_fetch_timeout: '0.05s' };
  const seen = subscriber.subscribe({ source, type: 'cluster' });
  const patient = subscriber.subscribe({
    source: { ads: {}, initial_fetch_timeout: '0s' },
    type: 'cluster',
    statPrefix: 'p.',
  });
  await subscriber.waitForStat('cluster.init_fetch_timeout', 1);
  t.equal(seen.timeouts, 1);
  await plane.waitFor('the request', ({ type }) => type === 'cluster');
  plane.release();
  await Promise.all([seen.has('a'), patient.has('a')]);
  t.equal(patient.timeouts, 0);
});

for (const protocol of ['sotw', 'delta'] as XdsProtocol[]) {
  t.test(`${protocol}: a response in progress when its stream ends is applied first, and not answered`, async (t) => {
    const plane = await startControlPlane(t);
    const subscriber = startSubscriber(t, plane, plane.api(protocol));
    plane.set('cluster', [cluster('a')]);
    let resume = () => {};
    subscriber.slowness = new Promise((resolve) => {
      resume = resolve;
    });
    const seen = subscriber.subscribe({ source: ADS, type: 'cluster' });
    await waitFor(() => subscriber.reads === 1, { what: 'the first response' });
    subscriber.slowness = undefined;
    plane.set('cluster', [cluster('a', 2)]);
    plane.endStreams();
    await plane.waitFor('another stream', ({ stream }) => stream === 1);
    // Resources of a later stream are applied later.
    const other = {
      source: plane.source(protocol) as ConfigSource,
      type: 'endpoints',
      names: new Set(['e']),
    } as const;
    plane.set('endpoints', [endpoints('e')]);
    await subscriber.subscribe(other).has('e');
    resume();
    await seen.has('a', '2');
    await plane.waitForAck('cluster');
    t.same(
      seen.updates.map(({ version, resources }) => version || resources[0]!.version),
      ['1', '2'],
    );
    const answered = plane.requests.filter(({ stream, nonce }) => stream === 1 && nonce.startsWith('1/'));
    t.same(answered, [], 'no answer to the first stream');
  });
}

t.test('an unreadable wrapper is refused, and its stream continues', async (t) => {
  const plane = await startControlPlane(t);
  const subscriber = startSubscriber(t, plane);
  plane.set('cluster', [cluster('a')]);
  subscriber.subscribe({ source: plane.source('sotw') as ConfigSource, type: 'cluster' });
  await plane.waitForAck('cluster');
  const writer = protobuf.Writer.create();
  const wrapper = 'type.googleapis.com/envoy.service.discovery.v3.Resource';
  writer
    .uint32(18)
    .fork()
    .uint32(10)
    .string(wrapper)
    .uint32(18)
    .bytes(Buffer.from([0x0a, 0xff]))
    .ldelim();
  writer.uint32(34).string('type.googleapis.com/envoy.config.cluster.v3.Cluster').uint32(42).string('torn/1');
  plane.sendBytes('cluster', writer.finish());
  const nack = await plane.waitFor('a refusal', ({ nonce }) => nonce === 'torn/1');
  t.equal(nack.error, 'a nameless one is no good');
  t.equal(nack.stream, 0);
});

t.test('state of the world: each response is answered, even after the next one has arrived', (t) => {
  const url = 'type.googleapis.com/envoy.config.cluster.v3.Cluster';
  const protocol = new StateOfTheWorld(url);
  const response = (version: string, nonce: string) => ({
    version,
    nonce,
    typeUrl: url,
    identifier: undefined,
    resources: [],
    removed: [],
  });
  const Request = loadMessages('envoy.service.discovery.v3.DiscoveryRequest')[
    'envoy.service.discovery.v3.DiscoveryRequest'
  ];
  const next = () => Request.toObject(Request.decode(protocol.request(undefined)));
  protocol.opened();
  protocol.subscribe({ names: new Set(), isWildcard: true, renewed: new Set() });
  next();
  protocol.answer(response('1', 'n1'), undefined, true);
  protocol.answer(response('2', 'n2'), 'no good', true);
  protocol.answer(response('3', 'n3'), undefined, true);
  t.match(next(), { version_info: '1', response_nonce: 'n1', error_detail: undefined });
  t.match(next(), { version_info: '1', response_nonce: 'n2', error_detail: { message: 'no good' } });
  t.match(next(), { version_info: '3', response_nonce: 'n3' });
  t.notOk(protocol.isDue);
  t.end();
});

t.test('metadata that gRPC would reject is refused at configuration time', (t) => {
  const found: string[] = [];
  for (const [key, value] of Object.entries({
    'x-a': 'b c',
    'x-b': 'ü',
    'x-c': 'a\tb',
    'x d': '',
    'x-bin': 'AA==',
    'x-e': '%PROTOCOL%',
  })) {
    const envoy_grpc = { cluster_name: 'a' };
    checkManagementService({ envoy_grpc, initial_metadata: [{ key, value }] }, 'at', (path, message) => {
      found.push(`${key}: ${path}: ${message}`);
    });
  }
  t.match(found, [
    /^x-b: at.initial_metadata\[0\].value: gRPC metadata must be printable ASCII$/,
    /^x-c: at.initial_metadata\[0\].value: /,
    /^x d: at.initial_metadata\[0\].key: /,
    /^x-bin: /,
    /^x-e: at.initial_metadata\[0\].value: operators/,
  ]);
  t.equal(found.length, 5);
  t.end();
});

t.test('a target that gRPC would reject is refused at configuration time', (t) => {
  const found: string[] = [];
  const targets = [
    'a:80',
    'dns:a',
    'unix:/a b',
    'ipv6:[::1]:80',
    'dns:a\n',
    '\na:80',
    'a b:80',
    'dns:',
    'a',
    'a:65536',
    'ipv4:1.1.1.1:1,2.2.2.2:99999',
  ];
  for (const target_uri of targets) {
    const google_grpc = { target_uri, stat_prefix: 'a' };
    checkManagementService({ google_grpc }, 'at', () => found.push(target_uri));
  }
  t.same(found, ['dns:a\n', '\na:80', 'a b:80', 'dns:', 'a', 'a:65536', 'ipv4:1.1.1.1:1,2.2.2.2:99999']);
  t.end();
});

t.test('requests respect the rate limit', async (t) => {
  const plane = await startControlPlane(t);
  const limits = { rate_limit_settings: { max_tokens: 2, fill_rate: 20 } };
  const subscriber = startSubscriber(t, plane, plane.api('sotw', limits));
  const types = ['cluster', 'listener', 'scoped-route'] as const;
  for (const type of types) subscriber.subscribe({ source: ADS, type });
  await waitFor(() => types.every((type) => plane.requests.some((request) => request.type === type)), {
    what: 'all requests',
  });
  t.ok(subscriber.store.value('control_plane.rate_limit_enforced')! >= 1);
  await subscriber.waitForStat('control_plane.pending_requests', 0);
});

t.test('a subscription in the turn in which the rate limit permits requests is sent, too', async (t) => {
  const plane = await startControlPlane(t);
  const rate_limit_settings = { max_tokens: 1, fill_rate: 5 };
  const subscriber = startSubscriber(t, plane, plane.api('sotw', { rate_limit_settings }));
  subscriber.subscribe({ source: ADS, type: 'cluster' });
  subscriber.subscribe({ source: ADS, type: 'endpoints', names: new Set(['a']) });
  await waitFor(() => (subscriber.store.value('control_plane.pending_requests') ?? 0) > 0, { what: 'a pause' });
  // Both timers fire in one turn: this shorter one first.
  setTimeout(() => subscriber.subscribe({ source: ADS, type: 'listener' }), 1);
  for (const end = performance.now() + 300; performance.now() < end; );
  await plane.waitFor('all requests', () => new Set(plane.requests.map(({ type }) => type)).size === 3);
});

t.test('delays are random below an interval that doubles, and restart after a success', (t) => {
  const random = new Random(1);
  const shares = Array.from({ length: 6 }, () => random.fraction());
  const backOff = new BackOff(500, 3000, new Random(1));
  for (const [index, intervalMs] of [500, 1000, 2000, 3000, 3000].entries()) {
    t.equal(backOff.next(), shares[index]! * intervalMs);
  }
  backOff.reset();
  t.equal(backOff.next(), shares[5]! * 500);
  t.end();
});

t.test('a token bucket is full at first and fills at its rate', (t) => {
  const bucket = new TokenBucket(2, 10, 1000);
  t.same([bucket.take(1000), bucket.take(1000), bucket.take(1000)], [true, true, false]);
  t.equal(bucket.waitMs, 100);
  t.same([bucket.take(1099), bucket.take(1100), bucket.take(1100)], [false, true, false]);
  t.same([bucket.take(9000), bucket.take(9000), bucket.take(9000)], [true, true, false], 'no more than it holds');
  t.end();
});

t.test('a subscription may end during its update, and errors have a bounded length', async (t) => {
  const plane = await startControlPlane(t);
  const subscriber = startSubscriber(t, plane, plane.api());
  plane.set(
    'cluster',
    Array.from({ length: 1000 }, (_, i) => cluster(`bad-${i}`)),
  );
  const subscription = subscriber.sources.subscribe({
    source: ADS,
    type: 'cluster',
    names: '*',
    statPrefix: 'gone.',
    watcher: {
      update() {
        subscription.close();
        return [];
      },
      fetchTimedOut() {},
    },
  });
  const { error } = await plane.waitForNack('cluster');
  t.ok(error!.length < 5000 && error!.endsWith('...(truncated)'));
  t.same(subscriber.store.scopesUnder('gone.'), []);
  t.same(subscriber.failures, []);
});

t.test("a management server's text ends no log line and contains no terminal codes", async (t) => {
  const log = captureLog(t);
  const plane = await startControlPlane(t);
  const subscriber = startSubscriber(t, plane, plane.api('delta'));
  const seen = subscriber.subscribe({ source: ADS, type: 'cluster' });
  const forged = 'name\n[critical] forged\u001b[31m';
  const shown = 'name\\n[critical] forged\\u001b[31m';
  seen.rejects.set(forged, 'no room');
  plane.set('cluster', [cluster(forged)]);
  const { error } = await plane.waitForNack('cluster');
  t.equal(error, `${shown}: no room`);
  plane.respond('cluster', 'delta', { nonce: 'stray', type_url: forged });
  await waitFor(() => log.text().includes(`type URL ${shown} as it`), { what: 'a line about it' });
  t.match(log.text(), `rejected: ${shown}: no room`);
  t.notMatch(log.text(), /^\[critical\]|\u001b/m);
});

t.test('a subscription that cannot begin leaves nothing behind', async (t) => {
  const plane = await startControlPlane(t);
  const subscriber = startSubscriber(t, plane);
  subscriber.store.addScope('taken.', ClusterStats);
  const source = plane.source('sotw') as ConfigSource;
  t.throws(() => subscriber.subscribe({ source, type: 'cluster', statPrefix: 'taken.' }));
  t.same(subscriber.store.scopesUnder('taken.control_plane.'), []);
});

t.test('an exception of a watcher refuses the update', async (t) => {
  const plane = await startControlPlane(t);
  const subscriber = startSubscriber(t, plane, plane.api());
  plane.set('runtime', [{ name: 'layer' }]);
  subscriber.sources.subscribe({
    source: ADS,
    type: 'runtime',
    names: new Set(['layer']),
    statPrefix: 'rtds.',
    watcher: {
      update() {
        throw new Error('oh');
      },
      fetchTimedOut() {},
    },
  });
  const { error } = await plane.waitForNack('runtime');
  t.equal(error, 'layer: internal error: oh');
  t.match(subscriber.failures, [/Runtime failed: Error: oh/]);
});
