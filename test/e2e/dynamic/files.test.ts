// Listeners, clusters and endpoints from files: read when they appear, are moved into place or change; an invalid file leaves
// the previous resources in use.

import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { encodeJson, loadMessages } from '../../../src/config/schema/messages.js';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  httpListener,
  httpRequest,
  routeAllTo,
  startBaton,
  startUpstream,
  staticCluster,
  tempDir,
  waitFor,
  waitForLog,
} from '../harness/index.js';
import { ResourceFile } from './resource-file.js';

const LISTENER = 'envoy.config.listener.v3.Listener';
const CLUSTER = 'envoy.config.cluster.v3.Cluster';
const ENDPOINTS = 'envoy.config.endpoint.v3.ClusterLoadAssignment';
const RESPONSE = 'envoy.service.discovery.v3.DiscoveryResponse';

const one = await startUpstream(t, (_request, answer) => void answer.end('one'));
const two = await startUpstream(t, (_request, answer) => void answer.end('two'));

/** Returns a bootstrap that takes everything from files of a directory. */
const dynamic = (listeners: Config, clusters: Config, more: Config = {}): Config =>
  bootstrap({
    listeners: [],
    clusters: [],
    extra: { dynamic_resources: { lds_config: listeners, cds_config: clusters, ...more } },
  });

const answerOf = async (baton: BatonProcess) => (await httpRequest(await baton.listenerPort('front'), '/')).body;
const waitForAnswer = (baton: BatonProcess, answer: string) =>
  waitFor(async () => (await answerOf(baton)) === answer, { what: `the answer ${answer}` });

t.test('a file that does not exist is refused', async (t) => {
  const directory = tempDir(t);
  const present = new ResourceFile(directory, 'present');
  present.write(CLUSTER);
  const missing = new ResourceFile(directory, 'missing').source;
  const unwatched = { path_config_source: { path: present.path, watched_directory: { path: `${directory}/none` } } };
  const outcomeOf = async (config: Config, ...args: string[]) => {
    const baton = await startBaton(t, { config, args, wait: 'spawned' });
    return { code: (await baton.exited).code, log: baton.stderr };
  };
  const reason = /paths must refer to an existing path in the system: '.*missing\.yaml' does not exist/;
  t.match(await outcomeOf(dynamic(present.source, missing)), { code: 1, log: reason });
  t.match(await outcomeOf(dynamic(present.source, missing), '--mode', 'validate'), { code: 1, log: reason });
  t.match(await outcomeOf(dynamic(missing, present.source)), { code: 1, log: reason });
  t.match(await outcomeOf(dynamic(missing, present.source), '--mode', 'validate'), { code: 0 }, 'as in Envoy');
  t.match(await outcomeOf(dynamic(present.source, unwatched)), { code: 1, log: /none' does not exist/ });
});

t.test('files moved into place or changed in place are applied; invalid ones are not', async (t) => {
  const directory = tempDir(t);
  const listeners = new ResourceFile(directory, 'listeners');
  const clusters = new ResourceFile(directory, 'clusters');
  listeners.writeText('resources: [');
  clusters.writeText('resources: [');
  const baton = await startBaton(t, { config: dynamic(listeners.source, clusters.source) });
  t.match(baton.stderr, /\[warning\].*no resources were taken from a file: .*listeners\.yaml:/);
  t.equal(await baton.stat('cluster_manager.cds.update_failure'), 1, 'an unreadable text does not block the start');

  clusters.write(CLUSTER, staticCluster('host', one.port));
  listeners.write(LISTENER, httpListener('front', 0, { route_config: routeAllTo('host') }));
  await waitForAnswer(baton, 'one');
  t.equal(await baton.stat('cluster_manager.cds.update_success'), 1);
  t.match((await baton.admin('/stats?filter=version_text')).body, /cluster_manager.cds.version_text: "1"/);

  writeFileSync(
    clusters.path,
    JSON.stringify({ version_info: 'in place', resources: [any(staticCluster('host', two.port))] }),
  );
  await waitForAnswer(baton, 'two');

  clusters.writeText('resources: [');
  await baton.waitForStat('cluster_manager.cds.update_failure', 2);
  await waitForLog(baton, /\[warning\].*clusters\.yaml:1:/);
  t.equal(await baton.stat('cluster_manager.cds.update_rejected'), 0, 'nothing was rejected');
  clusters.write(CLUSTER, staticCluster('host', one.port), { name: 'bad', lb_policy: 'NONE', no_such: 1 });
  await waitForAnswer(baton, 'one');
  t.equal(await baton.stat('cluster_manager.cds.update_rejected'), 1, 'an invalid resource does not affect the others');
  t.match(baton.stderr, /bad: .*clusters\.yaml:1:\d+: lb_policy: unknown value/);

  rmSync(clusters.path);
  t.equal(await answerOf(baton), 'one', 'the resources of a deleted file stay');
  await baton.stop();
});

t.test('a file may be given by path alone, as in older configurations', async (t) => {
  const directory = tempDir(t);
  const [listeners, clusters, endpoints] = ['listeners', 'clusters', 'endpoints'].map(
    (name) => new ResourceFile(directory, name),
  ) as [ResourceFile, ResourceFile, ResourceFile];
  const eds = { name: 'host', type: 'EDS', eds_cluster_config: { eds_config: { path: endpoints.path } } };
  endpoints.write(ENDPOINTS, staticCluster('host', one.port)['load_assignment'] as Config);
  clusters.write(CLUSTER, eds);
  listeners.write(LISTENER, httpListener('front', 0, { route_config: routeAllTo('host') }));
  const baton = await startBaton(t, { config: dynamic({ path: listeners.path }, { path: clusters.path }) });
  await waitForAnswer(baton, 'one');
  endpoints.write(ENDPOINTS, staticCluster('host', two.port)['load_assignment'] as Config);
  await waitForAnswer(baton, 'two');
  await baton.stop();
});

t.test(
  'a resource with a mistyped type leaves its listener in use, and the listeners that its file does not name',
  async (t) => {
    const directory = tempDir(t);
    const listeners = new ResourceFile(directory, 'listeners');
    const front = httpListener('front', 0, { route_config: routeAllTo('host') });
    const other = { ...front, name: 'other' };
    listeners.write(LISTENER, front, other);
    const lds = { dynamic_resources: { lds_config: listeners.source } };
    const config = bootstrap({ listeners: [], clusters: [staticCluster('host', one.port)], extra: lds });
    const baton = await startBaton(t, { config });
    t.equal(await answerOf(baton), 'one');

    listeners.write('envoy.config.listener.v3.Listner', front);
    await baton.waitForStat('listener_manager.lds.update_rejected', 1);
    t.equal(await answerOf(baton), 'one');
    t.equal(await baton.stat('listener_manager.listener_removed'), 0);
    t.match(baton.stderr, /front: .*listeners\.yaml.*found type URL 'type\.googleapis\.com\/.*\.Listner'/);

    // A resource without a name could be any of the existing ones.
    listeners.write('envoy.config.listener.v3.Listner', { ...front, name: undefined });
    await baton.waitForStat('listener_manager.lds.update_rejected', 2);
    t.equal(await answerOf(baton), 'one');
    t.equal(await baton.stat('listener_manager.listener_removed'), 0);

    listeners.write(LISTENER, front);
    await baton.waitForStat('listener_manager.listener_removed', 1);
    t.equal(await answerOf(baton), 'one');
    await baton.stop();
  },
);

t.test('a directory swapped by its symbolic link, and protobuf in binary form', async (t) => {
  const directory = tempDir(t);
  const types = loadMessages(RESPONSE, CLUSTER);
  const Response = types[RESPONSE];
  const put = (version: string, port: number) => {
    mkdirSync(join(directory, version));
    const value = encodeJson(types[CLUSTER], staticCluster('host', port));
    const resources = [{ type_url: `type.googleapis.com/${CLUSTER}`, value }];
    const bytes = Response.encode(Response.create({ version_info: version, resources })).finish();
    writeFileSync(join(directory, version, 'clusters.pb'), bytes);
    symlinkSync(version, join(directory, '..tmp'));
    renameSync(join(directory, '..tmp'), join(directory, '..data'));
  };
  put('v1', one.port);
  symlinkSync('..data/clusters.pb', join(directory, 'clusters.pb'));
  const listeners = new ResourceFile(directory, 'listeners');
  listeners.write(LISTENER, httpListener('front', 0, { route_config: routeAllTo('host') }));
  const source = {
    resource_api_version: 'V3',
    path_config_source: { path: join(directory, 'clusters.pb'), watched_directory: { path: directory } },
  };
  const baton = await startBaton(t, { config: dynamic(listeners.source, source) });
  t.equal(await answerOf(baton), 'one', 'live once the files are read');
  put('v2', two.port);
  await waitForAnswer(baton, 'two');
  await baton.stop();
});

t.test('many clusters take their endpoints from one file', async (t) => {
  const directory = tempDir(t);
  const [listeners, clusters, endpoints] = ['listeners', 'clusters', 'endpoints'].map(
    (name) => new ResourceFile(directory, name),
  ) as [ResourceFile, ResourceFile, ResourceFile];
  const names = ['host', 'a', 'b', 'c'];
  const assignments = (port: number) => names.map((name) => staticCluster(name, port)['load_assignment'] as Config);
  clusters.write(
    CLUSTER,
    ...names.map((name) => ({ name, type: 'EDS', eds_cluster_config: { eds_config: endpoints.source } })),
  );
  endpoints.write(ENDPOINTS, ...assignments(one.port));
  listeners.write(LISTENER, httpListener('front', 0, { route_config: routeAllTo('host') }));
  const baton = await startBaton(t, { config: dynamic(listeners.source, clusters.source) });
  t.equal(await answerOf(baton), 'one');
  endpoints.write(ENDPOINTS, ...assignments(two.port));
  await waitForAnswer(baton, 'two');
  for (const name of names) await baton.waitForStat(`cluster.${name}.update_success`, 2);
  await baton.stop();
});

t.test('unknown and deprecated fields in files: by default, rejected, ignored', async (t) => {
  const directory = tempDir(t);
  const listeners = new ResourceFile(directory, 'listeners');
  const clusters = new ResourceFile(directory, 'clusters');
  const front = httpListener('front', 0, { route_config: routeAllTo('host') });
  listeners.write(LISTENER, { ...front, reuse_port: true });
  clusters.write(
    CLUSTER,
    { ...staticCluster('host', one.port), nmae: 'x' },
    { ...staticCluster('other', one.port), nmae: 'y' },
  );
  const config = dynamic(listeners.source, clusters.source);
  const start = (...args: string[]) => startBaton(t, { config, args });

  const byDefault = await start();
  t.equal(await answerOf(byDefault), 'one');
  t.equal(await byDefault.stat('server.dynamic_unknown_fields'), 2);
  t.equal(await byDefault.stat('runtime.deprecated_feature_use'), 1);
  t.equal(byDefault.stderr.split("unknown field 'nmae'").length, 2, 'a warning at the first use only');
  t.match(byDefault.stderr, /field 'reuse_port' of .* is deprecated/);

  const rejecting = await start('--reject-unknown-dynamic-fields', '--ignore-unknown-dynamic-fields');
  await waitForLog(rejecting, /host: .*clusters\.yaml:.*: unknown field 'nmae'.*; did you mean 'name'\?/);
  t.equal(await rejecting.stat('server.dynamic_unknown_fields'), 0);
  t.equal(await rejecting.stat('cluster_manager.cds.update_rejected'), 1);
  t.equal(await rejecting.stat('cluster_manager.active_clusters'), 0);

  const ignoring = await start('--ignore-unknown-dynamic-fields');
  t.equal(await answerOf(ignoring), 'one');
  t.equal(await ignoring.stat('server.dynamic_unknown_fields'), 0);
  t.equal(await ignoring.stat('runtime.deprecated_feature_use'), 0);
  t.notMatch(ignoring.stderr, /nmae|reuse_port/);
});

function any(cluster: Config): Config {
  return { '@type': `type.googleapis.com/${CLUSTER}`, ...cluster };
}
