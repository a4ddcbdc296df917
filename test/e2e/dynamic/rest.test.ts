// Management servers over REST. The expected results are those of Envoy 1.40.

import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import t from 'tap';
import { besideEnvoy, type ProxyProgram } from '../harness/envoy.js';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  httpListener,
  httpRequest,
  startBaton,
  staticCluster,
  type Teardown,
  waitFor,
} from '../harness/index.js';

const CLUSTER = 'type.googleapis.com/envoy.config.cluster.v3.Cluster';
const ROUTES = 'type.googleapis.com/envoy.config.route.v3.RouteConfiguration';

interface Request {
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, unknown>;
  readonly body: { version_info?: string; resource_names?: string[]; type_url?: string; node: { id: string } };
}

interface Management {
  readonly port: number;
  readonly requests: Request[];
  /** Answers the requests to a path from now on. */
  answer(path: string, respond: (response: ServerResponse) => void): void;
}

async function startManagement(t: Teardown): Promise<Management> {
  const requests: Request[] = [];
  const answers = new Map<string, (response: ServerResponse) => void>();
  const server = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8');
    request.on('data', (part: string) => {
      text += part;
    });
    request.on('end', () => {
      const { headers, method = '', url: path = '' } = request;
      requests.push({ method, path, headers, body: JSON.parse(text) });
      (answers.get(path) ?? ((other) => other.writeHead(404).end()))(response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  return {
    port: (server.address() as AddressInfo).port,
    requests,
    answer: (path, respond) => void answers.set(path, respond),
  };
}

const json = (value: object) => (response: ServerResponse) => void response.end(JSON.stringify(value));
const cluster = (name: string) => ({
  '@type': CLUSTER,
  name,
  type: 'STATIC',
  connect_timeout: '1s',
  load_assignment: { cluster_name: name, endpoints: [] },
});
const source = (more: Config = {}): Config => ({
  resource_api_version: 'V3',
  api_config_source: {
    api_type: 'REST',
    transport_api_version: 'V3',
    cluster_names: ['management'],
    refresh_delay: '0.1s',
    request_timeout: '1s',
  },
  ...more,
});

interface Rig {
  readonly baton: BatonProcess;
  readonly management: Management;
}

async function start(t: Teardown, program: ProxyProgram, prepare: (management: Management) => Config): Promise<Rig> {
  const management = await startManagement(t);
  const extra = prepare(management);
  const { listeners = [], ...rest } = extra as { listeners?: Config[] };
  const baton = await startBaton(t, {
    ...program,
    config: bootstrap({
      listeners,
      clusters: [staticCluster('management', management.port)],
      extra: { node: { id: 'n', cluster: 'c' }, ...rest },
    }),
  });
  return { baton, management };
}

/** Waits until a stat is above `least`. */
async function exceeds(baton: BatonProcess, name: string, least: number): Promise<void> {
  await waitFor(async () => ((await baton.stat(name)) ?? 0) > least);
}

besideEnvoy('clusters by REST: updates, failures, rejections', async (t, program) => {
  const path = '/v3/discovery:clusters';
  const { baton, management } = await start(t, program, (server) => {
    server.answer(path, json({ version_info: 'one', resources: [cluster('a'), cluster('b')] }));
    return { dynamic_resources: { cds_config: source() } };
  });
  const [first] = management.requests;
  t.match(first, {
    method: 'POST',
    headers: { host: 'management', 'content-type': 'application/json', 'x-envoy-internal': 'true' },
    body: { node: { id: 'n' } },
  });
  t.notOk(first!.body.version_info);
  await baton.waitForStat('cluster_manager.active_clusters', 3);
  await waitFor(() => management.requests.at(-1)!.body.version_info === 'one');

  management.answer(path, (response) => void response.writeHead(304).end());
  const before = management.requests.length;
  await waitFor(() => management.requests.length > before + 3);
  t.equal(await baton.stat('cluster_manager.cds.update_failure'), 0);

  management.answer(path, (response) => void response.writeHead(500).end());
  await exceeds(baton, 'cluster_manager.cds.update_failure', 0);
  management.answer(path, (response) => void response.end('{ nothing'));
  await exceeds(baton, 'cluster_manager.cds.update_rejected', 0);
  t.equal(await baton.stat('cluster_manager.active_clusters'), 3, 'the last good ones stay');

  const bad = { ...cluster('bad'), connect_timeout: '-1s' };
  management.answer(path, json({ version_info: 'two', resources: [bad] }));
  const rejected = (await baton.stat('cluster_manager.cds.update_rejected'))!;
  await exceeds(baton, 'cluster_manager.cds.update_rejected', rejected + 1);
  t.equal(management.requests.at(-1)!.body.version_info, 'one');

  management.answer(path, json({ version_info: 'three', resources: [cluster('c')] }));
  await baton.waitForStat('cluster_manager.active_clusters', 2);
  t.match((await baton.admin('/config_dump?resource=dynamic_active_clusters')).body, /"version_info": "three"/);
});

besideEnvoy('routes by REST are requested by name', async (t, program) => {
  const path = '/v3/discovery:routes';
  const routes = (body: string) => ({
    '@type': ROUTES,
    name: 'mine',
    virtual_hosts: [
      {
        name: 'v',
        domains: ['*'],
        routes: [{ match: { prefix: '/' }, direct_response: { status: 200, body: { inline_string: body } } }],
      },
    ],
  });
  const { baton, management } = await start(t, program, (server) => {
    server.answer(path, json({ version_info: '1', resources: [routes('first')] }));
    return {
      listeners: [httpListener('main', 0, { rds: { route_config_name: 'mine', config_source: source() } })],
    };
  });
  const port = await baton.listenerPort('main');
  t.match(await httpRequest(port, '/'), { status: 200, body: 'first' });
  t.strictSame(management.requests[0]!.body.resource_names, ['mine']);
  management.answer(path, json({ version_info: '2', resources: [routes('second')] }));
  await waitFor(async () => (await httpRequest(port, '/')).body === 'second');
});

besideEnvoy('a server that does not answer delays the start by initial_fetch_timeout', async (t, program) => {
  const { baton } = await start(t, program, (server) => {
    server.answer('/v3/discovery:clusters', () => {});
    const cds_config = source({ initial_fetch_timeout: '0.3s' });
    (cds_config['api_config_source'] as Config)['request_timeout'] = '0.1s';
    return { dynamic_resources: { cds_config } };
  });
  await baton.waitForStats({ 'cluster_manager.cds.init_fetch_timeout': 1, 'cluster_manager.cds.update_success': 0 });
  await exceeds(baton, 'cluster_manager.cds.update_failure', 0);
});

t.test('endless and odd responses harm nobody', async (t) => {
  const path = '/v3/discovery:clusters';
  const { baton, management } = await start(t, { command: undefined }, (server) => {
    server.answer(path, json({ resources: [] }));
    return { dynamic_resources: { cds_config: source() } };
  });
  const odd = [
    '',
    '[]',
    'null',
    '7',
    '{"resources": 3}',
    '{"resources": [null]}',
    '{"resources": [{"@type": "a/b"}]}',
    '{"version_info": {}}',
    `${'['.repeat(100_000)}`,
    Buffer.from([0xff, 0xfe, 0]),
  ];
  for (const body of odd) {
    management.answer(path, (response) => void response.end(body));
    const seen = management.requests.length;
    await waitFor(() => management.requests.length > seen + 1);
  }
  t.match(await baton.admin('/ready'), { status: 200 });
  await exceeds(baton, 'cluster_manager.cds.update_rejected', 0);
  t.notMatch(baton.stderr, /\[critical\]/);
});

t.test('a failure that repeats is logged once, and a rejection in few lines', async (t) => {
  const path = '/v3/discovery:clusters';
  const { baton, management } = await start(t, { command: undefined }, (server) => {
    server.answer(path, (response) => void response.writeHead(500).end());
    return { dynamic_resources: { cds_config: source() } };
  });
  await exceeds(baton, 'cluster_manager.cds.update_failure', 3);
  const failures = () => baton.stderr.split('REST update for').length - 1;
  t.equal(failures(), 1);
  const fields = Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`field_${index}`, 'x'.repeat(100)]));
  management.answer(path, json({ version_info: '1', ...fields }));
  await exceeds(baton, 'cluster_manager.cds.update_rejected', 2);
  const text = baton.stderr.slice(baton.stderr.indexOf('REST config for'));
  t.equal(text.split('REST config for').length - 1, 1);
  t.ok(text.length < 8192, `${text.length} characters`);
  management.answer(path, json({ version_info: '2', resources: [] }));
  await exceeds(baton, 'cluster_manager.cds.update_success', 0);
  management.answer(path, (response) => void response.writeHead(500).end());
  await waitFor(() => failures() === 2, { what: 'the next failure in the log' });
});
