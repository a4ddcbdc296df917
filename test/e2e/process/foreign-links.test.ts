// Baton does not follow symbolic links that another user has placed in a directory that is writable by all users.

import {
  chmodSync,
  existsSync,
  lchownSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import {
  bootstrap,
  fileAccessLog,
  httpListener,
  httpRequest,
  loopback,
  startBaton,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { runBaton } from './command-line/run.js';

const OTHER_USER = 12_345;
const skip = process.getuid!() === 0 ? false : 'only root makes links of other users';
const REFUSED = /EPERM: '.*' is a link of user 12345 in a directory to which all users may write: it is not followed/;

/** Makes a directory like /tmp with links to files that do not exist. */
function rig(t: Test) {
  const root = tempDir(t);
  const [open, secret] = [join(root, 'open'), join(root, 'secret')];
  mkdirSync(open);
  mkdirSync(secret);
  chmodSync(open, 0o1777);
  return {
    path: (name: string) => join(open, name),
    victim: (name: string) => join(secret, name),
    link(name: string): string {
      const path = join(open, name);
      symlinkSync(join(secret, name), path);
      lchownSync(path, OTHER_USER, OTHER_USER);
      return path;
    },
  };
}

const listener = (log: string) =>
  httpListener('web', 0, {
    access_log: [fileAccessLog(log, '%PROTOCOL%\n')],
    route_config: {
      virtual_hosts: [
        { name: 'all', domains: ['*'], routes: [{ match: { prefix: '/' }, direct_response: { status: 200 } }] },
      ],
    },
  });

t.test('files for scripts are not written through such a link, and the server starts', { skip }, async (t) => {
  const { link, victim } = rig(t);
  const [id, address] = [link('id'), link('address')];
  const baton = await startBaton(t, {
    config: { admin: { address: loopback(0) } },
    args: ['--use-dynamic-base-id', '--base-id-path', id, '--admin-address-path', address],
    wait: 'spawned',
  });
  await waitFor(() => baton.stderr.includes('cannot open admin address output file'), { what: 'the start' });
  t.match(baton.stderr, new RegExp(`cannot open base id output file ${id} for writing. ${REFUSED.source}`));
  t.match(baton.stderr, new RegExp(`cannot open admin address output file ${address} for writing. ${REFUSED.source}`));
  t.notOk(existsSync(victim('id')));
  t.notOk(existsSync(victim('address')));
  await baton.stop();
});

t.test('no log is opened through such a link', { skip }, async (t) => {
  const { link, victim } = rig(t);
  const [process, access, admin] = [link('process'), link('access'), link('admin')];
  const log = await runBaton(t, { args: ['--config-yaml', '{}', '--log-path', process] });
  t.equal(log.code, 1);
  t.match(log.stderr, /^error: Failed to open log-file '.*': EPERM/);
  t.match(log.stderr, REFUSED);
  const config = bootstrap({ listeners: [listener(access)], clusters: [] });
  const server = { ...config, admin: { address: loopback(0), access_log_path: admin } };
  for (const args of [['--mode', 'validate'], []]) {
    const { code, stderr } = await runBaton(t, { config: server, args });
    t.equal(code, 1);
    t.match(stderr, new RegExp(`path: unable to open file '${access}': ${REFUSED.source}`));
    t.match(stderr, new RegExp(`admin.access_log_path: unable to open file '${admin}': ${REFUSED.source}`));
  }
  for (const name of ['process', 'access', 'admin']) t.notOk(existsSync(victim(name)), name);
});

t.test('no log is reopened through such a link, and the previous files stay in use', { skip }, async (t) => {
  const { path, link, victim } = rig(t);
  const umask = process.umask(0);
  t.teardown(() => process.umask(umask));
  const baton = await startBaton(t, {
    config: bootstrap({ listeners: [listener(path('access'))], clusters: [] }),
    args: ['--log-path', path('process'), '--file-flush-interval-msec', '50'],
  });
  for (const name of ['process', 'access']) {
    t.equal(statSync(path(name)).mode & 0o777, 0o644, `the permissions of ${name}`);
    renameSync(path(name), path(`${name}.1`));
    link(name);
  }
  baton.child.kill('SIGUSR1');
  const log = () => readFileSync(path('process.1'), 'utf8');
  await waitFor(() => /Failed to open log-file .*; retrying/.test(log()), { what: 'the refusal of the process log' });
  t.match(log(), REFUSED);
  await waitFor(() => /cannot reopen '.*access': EPERM/.test(log()), { what: 'the refusal of the access log' });
  await httpRequest(await baton.listenerPort('web'), '/');
  await waitFor(() => readFileSync(path('access.1'), 'utf8') === 'HTTP/1.1\n', { what: 'the line of the request' });
  for (const name of ['process', 'access']) {
    t.notOk(existsSync(victim(name)), name);
    rmSync(path(name));
  }
  await waitFor(() => existsSync(path('process')) && existsSync(path('access')), { what: 'the new files' });
  await baton.stop();
});

t.test('no profile is written through such a link', { skip }, async (t) => {
  const { link, victim } = rig(t);
  const baton = await startBaton(t, {
    config: { admin: { address: loopback(0), profile_path: link('profile') } },
  });
  const { status, body } = await baton.admin('/heapprofiler?enable=y', { method: 'POST' });
  t.not(status, 200);
  t.match(body, REFUSED);
  t.notOk(existsSync(victim('profile')));
  await baton.stop();
});

t.test('no Unix socket is bound through such a link', { skip }, async (t) => {
  const { path, link, victim } = rig(t);
  mkdirSync(victim('directory'));
  link('directory');
  const pipe = { pipe: { path: path('directory/socket') } };
  for (const [config, args] of [
    [{ admin: { address: pipe } }, []],
    [
      {
        admin: { address: loopback(0) },
        static_resources: { listeners: [{ ...listener('/dev/null'), address: pipe }] },
      },
      [],
    ],
    [{ admin: { address: loopback(0) } }, ['--base-id', '7', '--socket-path', path('directory/socket')]],
  ] as const) {
    const { code, stderr } = await runBaton(t, { config, args });
    t.equal(code, 1);
    t.match(stderr, REFUSED);
  }
  t.notOk(existsSync(victim('directory/socket')));
});
