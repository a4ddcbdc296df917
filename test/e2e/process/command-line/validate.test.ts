// --mode validate reports the errors that a server would report, and has no side effects.

import { execFileSync, spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import {
  bootstrap,
  type Config,
  fileAccessLog,
  freePort,
  httpListener,
  httpRequest,
  loopback,
  startBaton,
  tempDir,
  waitFor,
} from '../../harness/index.js';
import { runBaton } from './run.js';

const ANSWER: Config = {
  name: 'all',
  virtual_hosts: [
    {
      name: 'all',
      domains: ['*'],
      routes: [{ match: { prefix: '/' }, direct_response: { status: 200, body: { inline_string: 'here' } } }],
    },
  ],
};

t.test('a valid configuration prints OK to stdout with status 0', async (t) => {
  const config = bootstrap({ listeners: [httpListener('web', 0, { route_config: ANSWER })], clusters: [] });
  const { code, stdout, stderr } = await runBaton(t, { config, args: ['--mode', 'validate'] });
  t.equal(code, 0, stderr);
  t.match(stdout, /^configuration '.*config\.yaml' OK\n$/);
});

t.test('--config-yaml alone can be validated', async (t) => {
  const { code, stdout } = await runBaton(t, { args: ['--mode', 'validate', '--config-yaml', '{node: {id: a}}'] });
  t.equal(code, 0);
  t.match(stdout, / OK\n$/);
});

t.test('a configuration from a named pipe is read', async (t) => {
  const pipe = join(tempDir(t), 'bootstrap.json');
  execFileSync('mkfifo', [pipe]);
  const writer = spawn('sh', ['-c', `echo '{"admin": {"adress": {}}}' > "$0"`, pipe], { stdio: 'ignore' });
  t.teardown(() => writer.kill('SIGKILL'));
  const { code, stderr } = await runBaton(t, { args: ['--mode', 'validate', '-c', pipe] });
  t.equal(code, 1);
  t.match(stderr, /bootstrap\.json:1:12: admin\.adress: unknown field/);
});

t.test('all errors are reported at once', async (t) => {
  const config = { admin: { adress: {} }, static_resources: { clusters: [{ name: 'a', conect_timeout: '1s' }] } };
  const { code, stdout, stderr } = await runBaton(t, { config, args: ['--mode', 'validate'] });
  t.equal(code, 1);
  t.match(stderr, 'adress');
  t.match(stderr, 'conect_timeout');
  t.equal(stdout, '');
});

t.test('a field that Baton does not implement is refused by name, not ignored', async (t) => {
  const listener = { ...httpListener('web', 0, { route_config: ANSWER }), enable_mptcp: true };
  const config = bootstrap({ listeners: [listener], clusters: [] });
  const { code, stderr } = await runBaton(t, { config, args: ['--mode', 'validate'] });
  t.equal(code, 1);
  t.match(stderr, 'enable_mptcp');
});

t.test('a log file that could not be opened is reported with its position, and none is created', async (t) => {
  const directory = tempDir(t);
  const logTo = (path: string) =>
    bootstrap({
      listeners: [httpListener('web', 0, { route_config: ANSWER, access_log: [fileAccessLog(path, '%PROTOCOL%\n')] })],
      clusters: [],
    });
  const good = join(directory, 'access.log');
  const { code } = await runBaton(t, { config: logTo(good), args: ['--mode', 'validate'] });
  t.equal(code, 0);
  t.notOk(existsSync(good));
  const bad = await runBaton(t, { config: logTo(join(directory, 'none/access.log')), args: ['--mode', 'validate'] });
  t.equal(bad.code, 1);
  t.match(bad.stderr, /access_log\[0\]\.typed_config\.path: unable to open file '.*none\/access\.log': ENOENT/);
});

t.test('a server on the same addresses is not disturbed', async (t) => {
  const directory = tempDir(t);
  const socket = join(directory, 'listener.sock');
  const log = join(directory, 'log');
  const admin = join(directory, 'admin');
  const [webPort, adminPort] = [await freePort(), await freePort()];
  const web = { ...httpListener('web', webPort, { route_config: ANSWER }), enable_reuse_port: false };
  const onPipe = { ...httpListener('pipe', 0, { route_config: ANSWER }), address: { pipe: { path: socket } } };
  const config = {
    ...bootstrap({ listeners: [web, onPipe], clusters: [] }),
    admin: { address: loopback(adminPort) },
  };
  const baton = await startBaton(t, { config });
  const args = ['--mode', 'validate', '--log-path', log, '--admin-address-path', admin];
  const { code, stdout } = await runBaton(t, { args: [...args, '-c', baton.configPath] });
  t.equal(code, 0);
  t.match(stdout, / OK\n$/);
  t.notOk(existsSync(admin), 'no admin address file is written');

  t.equal((await httpRequest(webPort, '/')).body, 'here');
  t.equal((await httpRequest(0, '/', { socketPath: socket })).body, 'here', 'the socket file is unchanged');
  t.equal((await baton.admin('/ready')).status, 200);
  t.notMatch(readFileSync(log, 'utf8'), /listens on|starting/);
  await baton.stop();
});

t.test('a signal ends the validation at once, however long it would take', async (t) => {
  const clusters = Array.from({ length: 5000 }, (_, index) => ({ name: `c${index}`, type: 'STATIC' }));
  const config = bootstrap({ listeners: [], clusters });
  // Logged just before the check starts.
  const args = ['--mode', 'validate', '--enable-core-dump'];
  const baton = await startBaton(t, { config, args, wait: 'spawned' });
  await waitFor(() => baton.stderr.includes('core dump enabled'), { what: 'the start' });
  t.match(await baton.kill('SIGTERM'), { code: null, signal: 'SIGTERM' });
  t.equal(baton.stdout, '');
});

t.test('mistakes in files of resources are warnings', async (t) => {
  const directory = tempDir(t);
  const file = (name: string, content: object | string): Config => {
    const path = join(directory, name);
    writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
    return { path_config_source: { path }, resource_api_version: 'V3' };
  };
  const type = (name: string) => `type.googleapis.com/envoy.config.${name}`;
  const resources = (...list: object[]) => ({ resources: list });
  const lds_config = file('lds.yaml', resources({ '@type': type('listener.v3.Listener'), name: 'a', adress: {} }));
  const cds_config = file('cds.yaml', 'resources: [');
  const config_source = file(
    'rds.yaml',
    resources({ '@type': type('route.v3.RouteConfiguration'), name: 'r', virtual_hosts: [{ name: 'a' }] }),
  );
  const eds_config = file('eds.yaml', resources({ '@type': type('endpoint.v3.ClusterLoadAssignment') }));
  const config = {
    ...bootstrap({
      listeners: [httpListener('web', 0, { rds: { route_config_name: 'r', config_source } })],
      clusters: [{ name: 'e', type: 'EDS', eds_cluster_config: { eds_config } }],
    }),
    dynamic_resources: { lds_config, cds_config },
  };
  const { code, stdout, stderr } = await runBaton(t, { config, args: ['--mode', 'validate'] });
  t.equal(code, 0, stderr);
  t.match(stdout, / OK\n$/);
  t.match(stderr, /warning.*lds\.yaml.*adress/, 'an unknown field');
  t.match(stderr, /warning.*no resources are taken from a file: .*cds\.yaml/, 'text that is not YAML');
  t.match(stderr, /warning.*a resource is refused: .*rds\.yaml.*domains/, 'a virtual host without domains');
  t.match(stderr, /warning.*a resource is refused: .*eds\.yaml.*cluster_name/, 'an assignment without a name');
});
