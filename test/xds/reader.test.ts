// Reading of resources: results from bytes and files, refusals with their reasons, and caching.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { ClusterLoadAssignment, ConfigSource } from '../../src/config/generated/api.js';
import type { LoadCounts } from '../../src/config/load/load.js';
import { encodeJson, loadMessages } from '../../src/config/schema/messages.js';
import { ClusterStats } from '../../src/stats/layouts/cluster.js';
import { StatsStore } from '../../src/stats/store.js';
import type { CallingThread } from '../../src/upstream/calling-thread.js';
import { ConnectedSources } from '../../src/xds/connected-sources.js';
import { CachedReader } from '../../src/xds/reading/cached-reader.js';
import { ReadingThread, type ReadingThreadOptions } from '../../src/xds/reading/reading-thread.js';
import { type DynamicOptions, readingSettings } from '../../src/xds/reading/settings.js';
import type { ReadingResults, ReadingTask } from '../../src/xds/reading/task.js';
import type { Update } from '../../src/xds/resource.js';
import type { EncodedResource } from '../../src/xds/resource-reader.js';
import { ResourceFile } from '../e2e/dynamic/resource-file.js';
import { tempDir, waitFor } from '../e2e/harness/index.js';
import { cannotFailCalls, failCalls } from '../e2e/harness/system-calls.js';

const CLUSTER = 'envoy.config.cluster.v3.Cluster';
const LISTENER = 'envoy.config.listener.v3.Listener';
const ENDPOINTS = 'envoy.config.endpoint.v3.ClusterLoadAssignment';
const ROUTES = 'envoy.config.route.v3.RouteConfiguration';
const RESOURCE = 'envoy.service.discovery.v3.Resource';
const types = loadMessages(CLUSTER, LISTENER, ENDPOINTS, ROUTES, RESOURCE);

const BOOTSTRAP = {
  static_resources: { clusters: [{ name: 'control', http2_protocol_options: {} }] },
};

const DEFAULTS: DynamicOptions = {
  rejectsUnknown: false,
  ignoresUnknown: false,
  skipsDeprecatedLogs: true,
  disabledExtensions: [],
};

/** A reader with its counts. */
function newReader(t: Test, dynamic: Partial<DynamicOptions> = {}, options: Partial<ReadingThreadOptions> = {}) {
  const total = { unknownFields: 0, deprecatedUses: 0, unfinishedUses: 0 };
  const counted = (counts: LoadCounts) => {
    total.unknownFields += counts.unknownFields;
    total.deprecatedUses += counts.deprecatedUses;
    total.unfinishedUses += counts.unfinishedUses;
  };
  const settings = readingSettings(BOOTSTRAP, { ...DEFAULTS, ...dynamic });
  const thread = new ReadingThread({ settings, counted, ...options });
  t.teardown(() => thread.close());
  return { thread, reader: new CachedReader(thread), total };
}

function encoded(message: keyof typeof types, json: object, more: Partial<EncodedResource> = {}): EncodedResource {
  const typeUrl = `type.googleapis.com/${message}`;
  return { name: '', version: '', aliases: [], typeUrl, value: encodeJson(types[message], json), ...more };
}

function endpointsOf(name: string, count: number): object {
  const lb_endpoints = Array.from({ length: count }, (_, index) => ({
    endpoint: { address: { socket_address: { address: `10.0.${index >> 8}.${index & 255}`, port_value: 80 } } },
    load_balancing_weight: (index % 5) + 1,
  }));
  return { cluster_name: name, endpoints: [{ lb_endpoints }] };
}

const shared = newReader(t);

/** Reads as a subscription does, with the shared thread. */
function readerOf({ thread }: ReturnType<typeof newReader>) {
  return new CachedReader(thread);
}

/** Appends an unknown field. */
function withUnknownField(resource: EncodedResource): EncodedResource {
  return { ...resource, value: Buffer.concat([resource.value, Buffer.from([0xf8, 0xff, 0x03, 0x01])]) };
}

t.test('bytes become complete messages in canonical form, for lists of any length', async (t) => {
  const reader = readerOf(shared);
  const { resources, refused } = await reader.read('endpoints', 'v1', [encoded(ENDPOINTS, endpointsOf('big', 3000))]);
  t.strictSame(refused, []);
  t.match(resources, [{ name: 'big', version: 'v1', aliases: [] }]);
  t.strictSame(resources[0]!.message, endpointsOf('big', 3000));
});

t.test('an unchanged resource is the same object, a changed one is another', async (t) => {
  const reader = readerOf(shared);
  const all = ['a', 'b', 'c'].map((name) => encoded(CLUSTER, { name }));
  const first = await reader.read('cluster', 'v1', all);
  const changed = [all[0]!, encoded(CLUSTER, { name: 'b', alt_stat_name: 'other' }), all[2]!];
  const second = await reader.read('cluster', 'v2', changed);
  const isSame = second.resources.map(({ message }, index) => message === first.resources[index]!.message);
  t.strictSame(isSame, [true, false, true]);
  t.strictSame(
    second.resources.map(({ version }) => version),
    ['v2', 'v2', 'v2'],
    'without versions of their own',
  );
});

t.test('resources without bytes are handled in turns too', async (t) => {
  // Answers at once, so that every turn of the loop is one that the reader takes.
  class InstantThread extends ReadingThread {
    readonly sizes: number[] = [];
    override runWithRetries<T extends ReadingTask>(task: T): Promise<ReadingResults[T['kind']]> {
      const { encoded } = task as Extract<ReadingTask, { kind: 'resources' }>;
      this.sizes.push(encoded.length);
      const refused = { kind: 'refused', name: '', version: '', details: 'no name', message: undefined } as const;
      const counts = { unknownFields: 0, deprecatedUses: 0, unfinishedUses: 0 };
      return Promise.resolve({ items: encoded.map(() => refused), warnings: [], counts } as never);
    }
  }
  const thread = new InstantThread({ settings: readingSettings(BOOTSTRAP, DEFAULTS), counted: () => {} });
  t.teardown(() => thread.close());
  let turns = 0;
  let isOver = false;
  const countTurns = () => {
    turns++;
    if (!isOver) setImmediate(countTurns);
  };
  setImmediate(countTurns);
  const empty = { ...encoded(CLUSTER, {}), value: new Uint8Array(0) };
  const { refused } = await new CachedReader(thread).read('cluster', 'v1', new Array(50_000).fill(empty));
  isOver = true;
  t.equal(refused.length, 50_000);
  t.ok(turns >= 12, `it has taken ${turns} turns`);
  t.ok(Math.max(...thread.sizes) <= 8192, `tasks of ${thread.sizes.join()} resources`);
});

t.test('names, versions, aliases and TTLs come from the wrapper', async (t) => {
  const reader = readerOf(shared);
  const resource = (json: object) => ({ '@type': `type.googleapis.com/${CLUSTER}`, ...json });
  const read = await reader.read('cluster', 'v1', [
    encoded(RESOURCE, { name: 'a', version: '7', ttl: '1.5s', resource: resource({ name: 'a' }) }),
    encoded(RESOURCE, { name: 'b', ttl: '2s' }),
    encoded(CLUSTER, { name: 'c' }, { name: 'c', version: '8', aliases: ['d'] }),
    encoded(CLUSTER, { name: 'e' }, { name: 'f' }),
  ]);
  t.match(read.resources, [
    { name: 'a', version: '7' },
    { name: 'c', version: '8', aliases: ['d'] },
  ]);
  t.strictSame(
    read.ttlMs,
    new Map([
      ['a', 1500],
      ['b', 2000],
    ]),
  );
  t.match(read.refused, [{ name: 'f', details: "name: the resource was sent as 'f', and is called 'e'" }]);
});

t.test('a bad resource is refused with all its errors, and affects no other', async (t) => {
  const reader = readerOf(shared);
  const { resources, refused } = await reader.read('cluster', 'v1', [
    encoded(CLUSTER, { name: 'good' }),
    encoded(CLUSTER, {
      name: 'bad',
      connect_timeout: '-1s',
      connection_pool_per_downstream_connection: true,
      stats_matcher: {},
    }),
    { ...encoded(CLUSTER, { name: 'garbage' }), value: Buffer.from('garbage') },
    encoded(LISTENER, { name: 'other' }),
    { ...encoded(CLUSTER, { name: 'old' }), typeUrl: 'type.googleapis.com/envoy.api.v2.Cluster' },
    encoded(CLUSTER, {}),
    encoded(CLUSTER, { name: 'good', alt_stat_name: 'twice' }),
    encoded(CLUSTER, { name: 'h2', http2_protocol_options: {} }),
  ]);
  t.match(resources, [{ name: 'good' }, { name: 'h2' }]);
  t.match(refused, [
    {
      name: 'bad',
      version: 'v1',
      details: /^connect_timeout: .*\nstats_matcher: .*\nconnection_pool_per_downstream_connection: /,
    },
    {
      name: '',
      details: /unable to read it as a binary protobuf of envoy.config.cluster.v3.Cluster/,
      message: undefined,
    },
    { details: /expected a envoy.config.cluster.v3.Cluster, found type URL/ },
    { details: /older API; use 'type.googleapis.com\/envoy.config.cluster.v3.Cluster'/ },
    { details: /^name: / },
    { name: 'good', details: /duplicate resource 'good'/ },
  ]);
  const again = await reader.read('cluster', 'v2', [encoded(CLUSTER, { name: 'bad', lb_policy: 'RANDOM' })]);
  t.match(again.resources, [{ name: 'bad' }]);
});

t.test('unknown and deprecated fields are accepted and counted, or refused, or ignored', async (t) => {
  const unknown = withUnknownField(encoded(ROUTES, { name: 'new' }));
  const match = { prefix: '/', headers: [{ name: 'x', exact_match: 'y' }] };
  const routes = [{ match, direct_response: { status: 200 } }];
  const deprecated = encoded(ROUTES, { name: 'old', virtual_hosts: [{ name: 'all', domains: ['*'], routes }] });
  const byDefault = newReader(t);
  const accepted = await byDefault.reader.read('route', '1', [unknown, deprecated]);
  t.equal(accepted.resources.length, 2);
  t.match(byDefault.total, { unknownFields: 1, deprecatedUses: 1 });
  const rejecting = newReader(t, { rejectsUnknown: true, ignoresUnknown: true });
  const { resources, refused } = await rejecting.reader.read('route', '1', [unknown, deprecated]);
  t.match(refused, [{ name: 'new', details: /unknown field '8191' of envoy.config.route.v3.RouteConfiguration/ }]);
  t.match(resources, [{ name: 'old' }]);
  t.match(rejecting.total, { unknownFields: 0, deprecatedUses: 1 });
  const ignoring = newReader(t, { ignoresUnknown: true });
  const ignored = await ignoring.reader.read('route', '1', [unknown, deprecated]);
  t.equal(ignored.resources.length, 2);
  t.match(ignoring.total, { unknownFields: 0, deprecatedUses: 0 });
});

t.test('a file: versions, lines and columns; nothing of a garbled one is used', async (t) => {
  const reader = readerOf(shared);
  const path = join(tempDir(t), 'clusters.yaml');
  const write = (text: string) => writeFileSync(path, text);
  write(
    [
      'version_info: "3"',
      'resources:',
      `- "@type": type.googleapis.com/${CLUSTER}`,
      '  name: good',
      `- "@type": type.googleapis.com/${CLUSTER}`,
      '  name: bad',
      '  lb_policy: NONE',
      '  connect_timeout: soon',
      `- "@type": type.googleapis.com/${RESOURCE}`,
      '  name: wrapped',
      '  version: "9"',
      `  resource: { "@type": type.googleapis.com/${CLUSTER}, name: wrapped, nmae: x }`,
      '- name: untyped',
    ].join('\n'),
  );
  const first = await reader.readFile('cluster', path);
  t.match(first, {
    version: '3',
    resources: [
      { name: 'good', version: '3' },
      { name: 'wrapped', version: '9' },
    ],
  });
  t.match(first.refused, [
    {
      name: 'bad',
      details: new RegExp(`^${path}:7:14: lb_policy: unknown value.*\n(.*\n)*${path}:8:20: connect_timeout`),
    },
    { name: 'untyped', details: new RegExp(`^${path}:13:3: expected a ${CLUSTER}, found no '@type'`) },
  ]);
  const again = await reader.readFile('cluster', path);
  t.equal(again.resources[0]!.message, first.resources[0]!.message);
  for (const [text, fault, message] of [
    ['resources: [', 'garbled', /clusters\.yaml:1:/],
    ['', 'garbled', /it is empty/],
    ['version_info: "1"\nresource: []', 'refused', /it has no 'resources'/],
    ['{"version_info": "1"}', 'refused', /it has no 'resources'/],
    ['resources: 7', 'refused', /1:12: resources: expected a list/],
    ['version_info: "1\\n2"\nresources: []', 'refused', /1:15: version_info: it must not contain a control character/],
    ['version_info: a\nresources: []\nversion_info: b', 'garbled', /:3:1: 'version_info' is set twice/],
    ['- a', 'garbled', /expected the fields of envoy.service.discovery.v3.DiscoveryResponse/],
  ] as const) {
    write(text);
    await t.rejects(reader.readFile('cluster', path), { fault, message }, JSON.stringify(text));
  }
  await t.rejects(reader.readFile('cluster', `${path}.yaml`), { fault: 'unreadable', message: /no such file/ });
  write('resources: []');
  t.match(await reader.readFile('cluster', path), { version: '', resources: [], refused: [] });
  write(`resources:\n  "@type": type.googleapis.com/${CLUSTER}\n  name: single`);
  t.match(await reader.readFile('cluster', path), { resources: [{ name: 'single' }], refused: [] });
  write(`resources:\n  "@type": type.googleapis.com/${CLUSTER}\n  name: single\n  lb_policy: x`);
  t.match((await reader.readFile('cluster', path)).refused, [
    { name: 'single', details: new RegExp(`^${path}:4:14: lb_policy: unknown value`) },
  ]);
});

t.test('an idle thread ends, and is started again on demand', async (t) => {
  const { reader, thread } = newReader(t, {}, { idleMs: 1 });
  const resource = encoded(CLUSTER, { name: 'a' });
  await reader.read('cluster', '1', [resource]);
  await waitFor(() => !thread.isRunning);
  const { resources } = await reader.read('cluster', '2', [resource, encoded(CLUSTER, { name: 'b' })]);
  t.match(resources, [{ name: 'a' }, { name: 'b' }]);
});

t.test('a refused resource is shown with its invalid values and without secrets', async (t) => {
  const { reader } = newReader(t);
  const path = join(tempDir(t), 'listeners.json');
  const socket = {
    '@type': 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext',
    common_tls_context: { tls_certificates: [{ private_key: { inline_string: 7 } }] },
    require_client_certificate: 'perhaps',
  };
  const listener = {
    '@type': `type.googleapis.com/${LISTENER}`,
    name: 'front',
    listener_filters_timeout: '-5s',
    traffic_direction: 'SIDEWAYS',
    tcp_backlog_size: 1e30,
    filter_chains: [{ filter_chain_match: { source_ports: [1, 'two'] }, transport_socket: { typed_config: socket } }],
  };
  writeFileSync(path, JSON.stringify({ resources: [listener] }));
  const { refused } = await reader.readFile('listener', path);
  t.match(refused[0]!.message, {
    listener_filters_timeout: '-5s',
    traffic_direction: 'SIDEWAYS',
    tcp_backlog_size: 1e30,
    filter_chains: [
      {
        filter_chain_match: { source_ports: [1, 'two'] },
        transport_socket: { typed_config: { require_client_certificate: 'perhaps' } },
      },
    ],
  });
  t.notMatch(JSON.stringify(refused[0]!.message), /"inline_string":7/);
});

t.test(
  'after a bootstrap change cached resources are checked again, and remain the same objects if valid',
  async (t) => {
    const { reader, thread } = newReader(t);
    const api = { api_type: 'GRPC', transport_api_version: 'V3' };
    const grpc_services = [{ envoy_grpc: { cluster_name: 'control' } }];
    const eds_config = { resource_api_version: 'V3', api_config_source: { ...api, grpc_services } };
    const all = [
      encoded(CLUSTER, { name: 'plain' }),
      encoded(CLUSTER, { name: 'discovered', type: 'EDS', eds_cluster_config: { eds_config } }),
    ];
    const first = await reader.read('cluster', 'v1', all);
    t.equal(first.resources.length, 2);
    thread.updateSettings(readingSettings({}, DEFAULTS));
    const second = await reader.read('cluster', 'v2', all);
    t.match(second.refused, [{ name: 'discovered', details: /'control' does not exist/ }]);
    thread.updateSettings(readingSettings(BOOTSTRAP, DEFAULTS));
    const third = await reader.read('cluster', 'v3', all);
    t.strictSame(
      third.resources.map(({ message }, index) => message === first.resources[index]!.message),
      [true, true],
    );
  },
);

t.test('an expression with a large program is refused, unless a static layer of the bootstrap allows it', async (t) => {
  const { reader, thread } = newReader(t);
  const route = { match: { safe_regex: { regex: 'a{1000}' } }, redirect: {} };
  const routes = encoded(ROUTES, { name: 'r', virtual_hosts: [{ name: 'v', domains: ['*'], routes: [route] }] });
  const { refused } = await reader.read('route', 'v1', [routes]);
  t.match(refused, [{ details: /match\.safe_regex\.regex: the RE2 program .* has a size of 1000 or more/ }]);
  const layers = [{ name: 'static', static_layer: { 're2.max_program_size.error_level': 1000 } }];
  thread.updateSettings(readingSettings({ ...BOOTSTRAP, layered_runtime: { layers } }, DEFAULTS));
  t.match((await reader.read('route', 'v2', [routes])).resources, [{ name: 'r' }]);
});

t.test('a read in progress when the bootstrap changes uses the new one', async (t) => {
  const { reader, thread } = newReader(t);
  const reading = reader.read('cluster', 'v1', [withUnknownField(encoded(CLUSTER, { name: 'a' }))]);
  await waitFor(() => thread.isRunning, { what: 'the thread' });
  thread.updateSettings(readingSettings(BOOTSTRAP, { ...DEFAULTS, rejectsUnknown: true }));
  t.match((await reading).refused, [{ name: 'a', details: /unknown field/ }]);
});

t.test('a resource that exceeds the memory limit is refused, the others are not', async (t) => {
  const { reader } = newReader(t, {}, { maxHeapMb: 96 });
  // So many empty groups that their decoded form exceeds the limit.
  const huge = { ...encoded(ENDPOINTS, {}), value: Buffer.alloc(4_000_000, Buffer.from([0x12, 0x00])) };
  const { resources, refused } = await reader.read('endpoints', '1', [
    encoded(ENDPOINTS, { cluster_name: 'small' }),
    huge,
  ]);
  t.match(resources, [{ name: 'small' }]);
  t.match(refused, [{ details: /needs more than .* of memory/ }]);
});

t.test('messages are encoded for requests', async (t) => {
  const bytes = await shared.thread.encode(ENDPOINTS, { cluster_name: 'a' });
  t.strictSame(types[ENDPOINTS].decode(bytes).toJSON(), { cluster_name: 'a' } satisfies ClusterLoadAssignment);
});

t.test('a thread that cannot start leaves no task pending', async (t) => {
  // No list: it fails before its first task.
  const { thread } = newReader(t, { disabledExtensions: 5 as never });
  const ask = () => thread.run({ kind: 'encode', message: ENDPOINTS, value: {} });
  const answers = await Promise.allSettled([ask(), ask()]);
  t.match(answers, [{ status: 'rejected', reason: { cause: TypeError } }, { status: 'rejected' }]);
});

t.test('when no thread can start tasks are rejected, and later ones succeed', { skip: cannotFailCalls }, async (t) => {
  const { thread } = newReader(t);
  const ask = () => thread.run({ kind: 'encode', message: CLUSTER, value: { name: 'a' } });
  const recover = await failCalls(t, process.pid, 'clone,clone3', 'EAGAIN');
  const noThread = { name: 'NoThreadError', cause: { code: 'ERR_WORKER_INIT_FAILED' } };
  for (let times = 0; times < 2; times++) await t.rejects(ask(), noThread);
  await recover();
  t.ok((await ask()).length > 0);
});

t.test(
  "a server's resources are read when a thread can start, unless they are no longer needed",
  { skip: cannotFailCalls },
  async (t) => {
    const { thread, reader } = newReader(t);
    const recover = await failCalls(t, process.pid, 'clone,clone3', 'EAGAIN');
    const resource = encoded(CLUSTER, { name: 'a' });
    const read = reader.read('cluster', 'v1', [resource]);
    const node = thread.encode(CLUSTER, { name: 'a' });
    const unwanted = new CachedReader(thread);
    const given = unwanted.read('cluster', 'v1', [resource]);
    await t.rejects(thread.run({ kind: 'encode', message: CLUSTER, value: {} }), { name: 'NoThreadError' });
    unwanted.close();
    await t.rejects(given, { name: 'AbortError' });
    await recover();
    t.match(await read, { resources: [{ name: 'a' }], refused: [] });
    t.ok((await node).length > 0);
  },
);

t.test('a refused resource shows no more than an accepted one', async (t) => {
  const reader = readerOf(shared);
  const path = join(tempDir(t), 'clusters.json');
  const tls = (certificate: object) => ({
    name: 'tls',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext',
      common_tls_context: { tls_certificates: [certificate] },
    },
  });
  const cluster = (name: string, certificate: object) => ({
    '@type': `type.googleapis.com/${CLUSTER}`,
    name,
    transport_socket: tls(certificate),
    no_such_field: 1,
  });
  const packed = {
    '@type': 'type.googleapis.com/google.protobuf.Any',
    value: tls({ privateKey: { inlineString: 'hush' } }).typed_config,
  };
  const resources = [
    cluster('whole', { private_key: { inline_string: 'hush' }, password: { inline_string: 'hush' } }),
    cluster('mistyped', { private_key: 'hush', password: { inline_bytes: '-hush-' } }),
    { ...cluster('packed', {}), transport_socket: { name: 'tls', typed_config: packed } },
  ];
  writeFileSync(path, JSON.stringify({ resources }));
  const { refused, resources: usable } = await reader.readFile('cluster', path);
  t.strictSame(usable, []);
  t.notMatch(JSON.stringify(refused), 'hush');
  const [whole, mistyped] = refused;
  t.match(whole!.message, tlsOf({ private_key: { inline_string: '[redacted]' } }));
  t.match(mistyped!.details, /private_key: expected the fields of envoy\.config\.core\.v3\.DataSource$/m);

  function tlsOf(certificate: object): object {
    return { transport_socket: tls(certificate) };
  }
});

t.test('a known resource may be repeated beside a new one of its name', async (t) => {
  const reader = readerOf(shared);
  const older = encoded(CLUSTER, { name: 'a', connect_timeout: '1s' });
  const newer = encoded(CLUSTER, { name: 'a', connect_timeout: '2s' });
  await reader.read('cluster', 'v1', [older]);
  const { refused, resources } = await reader.read('cluster', 'v2', [newer, older]);
  t.match(resources, [{ name: 'a', message: { connect_timeout: '2s' } }]);
  t.match(refused, [{ name: 'a', details: /^duplicate resource 'a'/, message: { connect_timeout: '1s' } }]);
});

t.test('a shared file is watched until its last subscription ends', async (t) => {
  const { failures, file, subscribe } = newFile(t);
  file.write(CLUSTER, { name: 'a' });
  const [one, other] = [subscribe('one.'), subscribe('other.')];
  await Promise.all([one.hasVersion('1'), other.hasVersion('1')]);
  one.subscription.close();
  await other.hasVersion(file.write(CLUSTER, { name: 'b' }));
  other.subscription.close();
  const later = subscribe('later.');
  await later.hasVersion('2');
  await later.hasVersion(file.write(CLUSTER, { name: 'c' }));
  t.same(failures, []);
});

t.test(
  'a file that could not be read because threads were exhausted is read later',
  { skip: cannotFailCalls },
  async (t) => {
    const { failures, file, subscribe } = newFile(t);
    const version = file.write(CLUSTER, { name: 'a' });
    const recover = await failCalls(t, process.pid, 'clone,clone3', 'EAGAIN');
    const { hasVersion, isTimedOut } = subscribe('one.');
    await waitFor(isTimedOut, { what: 'the failure' });
    await recover();
    await hasVersion(version);
    t.match(failures, [/was not read: .*EAGAIN/]);
  },
);

t.test('a failed subscription leaves no file watch', (t) => {
  const { store, subscribe } = newFile(t);
  const watches = watchCount();
  store.addScope('taken.', ClusterStats);
  t.throws(() => subscribe('taken.'));
  t.equal(watchCount(), watches);
  const other = subscribe('other.');
  t.ok(watchCount() > watches);
  t.throws(() => subscribe('taken.'));
  t.ok(watchCount() > watches, 'another subscription to the file continues');
  other.subscription.close();
  t.equal(watchCount(), watches);
  t.end();
});

/** Returns the kernel's watches of this process. */
function watchCount(): number {
  const descriptors = readdirSync('/proc/self/fdinfo').map((name) => {
    try {
      return readFileSync(`/proc/self/fdinfo/${name}`, 'latin1');
    } catch {
      // The watch of the directory itself.
      return '';
    }
  });
  return descriptors.join('').split('inotify wd:').length - 1;
}

/** A file, and subscriptions to it. */
function newFile(t: Test) {
  const failures: string[] = [];
  const store = new StatsStore({ workers: 1 });
  const sources = new ConnectedSources({
    store,
    calls: {} as CallingThread,
    bootstrap: () => BOOTSTRAP,
    dynamic: DEFAULTS,
    node: {},
    counted() {},
    prepare: async () => {},
    failed: (what, error) => failures.push(`${what}: ${error}`),
  });
  t.teardown(() => sources.close());
  const file = new ResourceFile(tempDir(t), 'clusters');
  const subscribe = (statPrefix: string) => {
    const versions: string[] = [];
    let isTimedOut = false;
    const watcher = {
      update({ version }: Update) {
        versions.push(version);
        return [];
      },
      fetchTimedOut() {
        isTimedOut = true;
      },
    };
    const source = file.source as ConfigSource;
    const subscription = sources.subscribe({ source, type: 'cluster', names: '*', statPrefix, watcher });
    const hasVersion = (version: string) => waitFor(() => versions.includes(version), { what: version });
    return { subscription, hasVersion, isTimedOut: () => isTimedOut };
  };
  return { failures, file, store, subscribe };
}
