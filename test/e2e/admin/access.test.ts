// Access control of the admin interface: Unix socket, allow_paths, --admin-allowed-hosts, --enable-mutex-tracing.

import { statSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { decodesAs } from '../../admin/admin-messages.js';
import {
  bootstrap,
  type HttpRequestOptions,
  httpListener,
  httpRequest,
  startBaton,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { answering, managerOf } from '../http/proxy.js';

t.test('an IPv6 address accepts IPv4 with ipv4_compat only', async (t) => {
  for (const args of [[], ['--use-dynamic-base-id']]) {
    for (const ipv4_compat of [true, false]) {
      const address = { socket_address: { address: '::', port_value: 0, ipv4_compat } };
      const baton = await startBaton(t, { config: { admin: { address } }, args, wait: 'spawned' });
      const port = await waitFor(() => baton.adminPort, { what: 'the port' });
      const ask = (host: string) => httpRequest(port, '/ready', { host }).then(({ body }) => body);
      await waitFor(async () => (await ask('::1')) === 'LIVE\n', { what: 'an answer over IPv6' });
      if (ipv4_compat) t.equal(await ask('127.0.0.1'), 'LIVE\n');
      else await t.rejects(ask('127.0.0.1'), { code: 'ECONNREFUSED' });
      await baton.stop();
    }
  }
});

t.test('a Unix socket serves the allowed paths and hosts only', async (t) => {
  const path = join(tempDir(t), 'admin.sock');
  const baton = await startBaton(t, {
    config: bootstrap({
      listeners: [],
      clusters: [],
      extra: {
        admin: {
          address: { pipe: { path, mode: 0o660 } },
          allow_paths: [
            { exact: '/ready' },
            { prefix: '/stats' },
            { suffix: 'format=json' },
            { contains: 'hot' },
            { safe_regex: { regex: '/(server_info|memory)' } },
            { exact: '/CERTS', ignore_case: true },
          ],
        },
      },
    }),
    args: ['--admin-allowed-hosts', 'localhost, admin.example:9901, ::1', '-l', 'warning'],
    wait: 'spawned',
  });
  const ask = (target: string, { host = 'localhost', ...options }: HttpRequestOptions = {}) =>
    httpRequest(0, target, { ...options, socketPath: path, headers: { host } });
  await waitFor(
    () =>
      ask('/ready').then(
        ({ status }) => status === 200,
        () => false,
      ),
    { what: '/ready' },
  );
  t.equal(statSync(path).mode & 0o777, 0o660);
  for (const target of [
    '/ready',
    '/stats?usedonly',
    '/listeners?format=json',
    '/hot_restart_version',
    '/memory',
    '/certs',
  ]) {
    t.match(await ask(target), { status: 200 }, target);
  }
  for (const target of ['/ready?a', '/listeners', '/clusters', '/server_info?a', '/nothing']) {
    t.match(await ask(target), { status: 403, body: `request to path ${target} not allowed` }, target);
  }
  t.match(await ask('/quitquitquit', { method: 'POST' }), { status: 403 });
  for (const host of ['admin.example:9901', '[::1]:9901'])
    t.match(await ask('/ready', { host }), { status: 200 }, host);
  for (const host of ['admin.example', 'evil.example', 'localhost.evil.example']) {
    t.match(await ask('/ready', { host }), { status: 403, body: /^The host .* is not allowed/ }, host);
  }
  await baton.stop();
});

t.test('--enable-mutex-tracing counts contention', async (t) => {
  const baton = await startBaton(t, {
    config: bootstrap({
      listeners: [httpListener('main', 0, managerOf([answering({ prefix: '/' }, 'served')]))],
      clusters: [],
    }),
    args: ['--enable-mutex-tracing', '-l', 'warning'],
  });
  const { headers, body } = await baton.admin('/contention');
  t.equal(headers['content-type'], 'application/json');
  const stats = JSON.parse(body) as Record<string, string>;
  decodesAs(t, 'MutexStats', stats);
  t.strictSame(Object.keys(stats), ['num_contentions', 'current_wait_cycles', 'lifetime_wait_cycles']);
  t.ok(Number(stats['lifetime_wait_cycles']) >= Number(stats['current_wait_cycles']));
});
