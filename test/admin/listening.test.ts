import { execFile, execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { request } from 'node:http';

import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { promisify } from 'node:util';
import t, { type Test } from 'tap';
import { AdminServer } from '../../src/admin/http/admin-server.js';
import { writeAddressFile } from '../../src/admin/http/connections/address-file.js';
import type { ListenTarget } from '../../src/admin/http/connections/listen.js';
import { addressText, decodeSockaddr, encodeAddress, parseAddress } from '../../src/io/addresses/address.js';
import { loadShim } from '../../src/io/shim.js';
import { tempDir } from '../e2e/harness/environment.js';
import { httpRequest } from '../e2e/harness/http-client.js';
import { findPeer } from '../e2e/harness/peers.js';
import { connectRaw, rawExchange } from '../e2e/harness/raw-connection.js';
import { waitFor } from '../e2e/harness/wait-for.js';
import { captureLog } from './capture-log.js';
import { FakeServices, LOOPBACK, startAdmin } from './fixture.js';

async function started(t: Test, target: ListenTarget): Promise<AdminServer> {
  const server = new AdminServer(new FakeServices());
  t.teardown(() => server.close(0));
  await server.listen(target);
  return server;
}

/** Returns the state that is served on a Unix socket. */
function readyOf(socketPath: string): Promise<string> {
  return new Promise((resolve, reject) => {
    request({ socketPath, path: '/ready', agent: false }, (answer) => {
      answer.setEncoding('utf8').on('data', resolve);
    })
      .on('error', reject)
      .end();
  });
}

t.test('port 0 is replaced by the actual port, which is written to the address file', async (t) => {
  const path = join(tempDir(t), 'admin');
  const { address } = await started(t, { address: LOOPBACK });
  writeAddressFile(path, address!);
  t.match(readFileSync(path, 'utf8'), /^127\.0\.0\.1:[1-9]\d*$/);
  t.equal((await httpRequest(address!.port, '/ready')).status, 200);
});

t.test('an address file that cannot be written is only logged', async (t) => {
  const log = captureLog(t);
  const path = join(tempDir(t), 'nowhere', 'admin');
  writeAddressFile(path, LOOPBACK);
  t.match(log.text(), `cannot open admin address output file ${path} for writing.`);
});

t.test('the admin interface listens on an IPv6 address', async (t) => {
  const { address } = await started(t, { address: parseAddress('[::1]:0')! });
  t.match(addressText(address!), /^\[::1\]:[1-9]\d*$/);
  t.equal((await httpRequest(address!.port, '/ready', { host: '::1' })).status, 200);
});

t.test('an error about an address in use contains the address', async (t) => {
  const { port } = await startAdmin(t);
  const second = new AdminServer(new FakeServices());
  await t.rejects(second.listen({ address: parseAddress(`127.0.0.1:${port}`)! }), {
    code: 'CONFIG_INVALID',
    where: 'admin.address',
    message: new RegExp(`^cannot listen on 127\\.0\\.0\\.1:${port}: .*address already in use`),
  });
  await second.close();
  t.equal((await httpRequest(port, '/ready')).status, 200);
});

t.test('a Unix socket has its permissions, and its file is removed with the server', async (t) => {
  const path = join(tempDir(t), 'admin.sock');
  const server = await started(t, { address: parseAddress(path)!, mode: 0o600 });
  t.equal(addressText(server.address!), path);
  t.equal(statSync(path).mode & 0o777, 0o600);
  t.equal(await readyOf(path), 'LIVE\n');
  await server.close();
  t.notOk(existsSync(path));
});

t.test('the socket file of a killed process is replaced, the file of a served socket is not', async (t) => {
  const path = join(tempDir(t), 'admin.sock');
  const crash = `require('node:net').createServer().listen('${path}', () => process.kill(process.pid, 'SIGKILL'))`;
  t.throws(() => execFileSync(process.execPath, ['-e', crash]));
  t.ok(statSync(path).isSocket());
  const first = await started(t, { address: parseAddress(path)! });
  const second = new AdminServer(new FakeServices());
  await t.rejects(second.listen({ address: parseAddress(path)! }), { message: /address already in use/ });
  t.equal(await readyOf(path), 'LIVE\n');
  await first.close();
  mkdirSync(path);
  await t.rejects(second.listen({ address: parseAddress(path)! }), { code: 'CONFIG_INVALID' });
});

t.test('a Unix socket in a missing directory is refused with ENOENT', async (t) => {
  const server = new AdminServer(new FakeServices());
  const path = join(tempDir(t), 'missing', 'admin.sock');
  await t.rejects(server.listen({ address: parseAddress(path)! }), { message: /ENOENT: no such file or directory/ });
});

t.test('a server that is closed while it starts to listen does not listen', async (t) => {
  const path = join(tempDir(t), 'admin.sock');
  const crash = `require('node:net').createServer().listen('${path}', () => process.kill(process.pid, 'SIGKILL'))`;
  t.throws(() => execFileSync(process.execPath, ['-e', crash]));
  const server = new AdminServer(new FakeServices());
  const listening = server.listen({ address: parseAddress(path)! });
  await server.close();
  await t.rejects(listening, { message: 'the admin interface has been closed' });
  t.notOk(existsSync(path));
  await t.rejects(server.listen({ address: LOOPBACK }), { message: 'the admin interface has been closed' });
});

t.test('the admin interface listens on an abstract Unix socket', async (t) => {
  const name = `@baton-admin-test-${process.pid}`;
  const server = await started(t, { address: parseAddress(name)! });
  t.equal(addressText(server.address!), name);
  // Node's own clients pad names too.
  t.ok(
    readFileSync('/proc/net/unix', 'utf8')
      .split('\n')
      .some((line) => line.endsWith(` ${name}`)),
    'exactly that name',
  );
  const taken = new AdminServer(new FakeServices());
  await t.rejects(taken.listen({ address: parseAddress(name)! }), { message: /cannot listen on @/ });
  const curl = findPeer('curl');
  if (curl.path === undefined) return;
  const args = ['-s', '--abstract-unix-socket', name.slice(1), 'http://localhost/ready'];
  t.equal((await promisify(execFile)(curl.path, args)).stdout, 'LIVE\n');
});

t.test('a socket is taken over and passed on without losing a connection', async (t) => {
  const shim = loadShim();
  const fd = shim.openListenSocket(encodeAddress(LOOPBACK), {
    reusePort: false,
    freebind: false,
    transparent: false,
    v6Only: true,
  });
  shim.listen(fd, 64);
  const raw = shim.boundAddress(fd);
  const address = decodeSockaddr(raw, 0, raw.length);
  const duplicate = shim.duplicate(fd);
  const parent = await started(t, { address, fd });
  t.same(parent.address, address);
  t.equal((await httpRequest(address.port, '/ready')).status, 200);
  await parent.close();
  const waiting = httpRequest(address.port, '/ready');
  const child = await started(t, { address, fd: duplicate });
  t.equal((await waiting).status, 200, 'requested while no process accepted');
  await child.close();
  await t.rejects(httpRequest(address.port, '/ready'), { code: 'ECONNREFUSED' });
});

t.test('a Unix socket that was taken over keeps its file for the next process', async (t) => {
  const shim = loadShim();
  const address = parseAddress(join(tempDir(t), 'admin.sock'))!;
  const options = { reusePort: false, freebind: false, transparent: false, v6Only: true };
  const fd = shim.openListenSocket(encodeAddress(address), options);
  shim.listen(fd, 64);
  const duplicate = shim.duplicate(fd);
  const parent = await started(t, { address, fd });
  t.same(parent.address, address);
  await parent.close();
  await started(t, { address, fd: duplicate });
  t.equal(await readyOf(address.path), 'LIVE\n');
});

t.test('a client that has just connected to a replaced process can send its request', async (t) => {
  const { server, port } = await startAdmin(t);
  const [fresh, used] = [await connectRaw(t, port), await connectRaw(t, port)];
  used.write('GET /ready HTTP/1.1\r\nHost: a\r\n\r\n');
  await used.readUntil('LIVE');
  const stopped = server.stopListening();
  for (let turns = 0; turns < 10; turns++) await setImmediate();
  fresh.write('GET /ready HTTP/1.1\r\nHost: a\r\n\r\n');
  const { text } = await fresh.readToEnd();
  t.match(text, /^HTTP\/1\.1 200 OK\r\n/);
  t.match(text, '\r\nconnection: close\r\n');
  t.match(text, 'LIVE\n');
  await stopped;
  await used.readToEnd();
});

t.test('a client that sends no request does not keep a replaced process', async (t) => {
  const { server, port } = await startAdmin(t);
  const [silent, used] = [await connectRaw(t, port), await connectRaw(t, port)];
  used.write('GET /ready HTTP/1.1\r\nHost: a\r\n\r\n');
  await used.readUntil('LIVE');
  await server.stopListening();
  t.equal((await silent.readToEnd()).text, '');
});

t.test('closing completes an answer in flight and ends idle connections', async (t) => {
  const { services, server, port } = await startAdmin(t);
  for (let i = 0; i < 20_000; i++) services.addCluster({ name: `c${i}` });
  const idle = await connectRaw(t, port);
  idle.write('GET /ready HTTP/1.1\r\nHost: a\r\n\r\n');
  await idle.readUntil('LIVE');
  const silent = await connectRaw(t, port);
  const busy = await connectRaw(t, port);
  busy.socket.pause();
  busy.write('GET /clusters HTTP/1.1\r\nHost: a\r\n\r\n');
  await waitFor(() => busy.socket.readableLength > 0);
  const closed = server.close(60_000);
  await idle.readToEnd();
  await silent.readToEnd();
  t.same([idle.closed, silent.closed], ['end', 'end']);
  await t.rejects(httpRequest(port, '/ready'), { code: 'ECONNREFUSED' });
  busy.socket.resume();
  t.match(await busy.readToEnd(), { text: /c19999::added_via_api::false\n\r\n0\r\n\r\n$/, closed: 'end' });
  await closed;
});

t.test('closing cuts the remaining answers after the grace time, and may be called twice', async (t) => {
  const { server, port } = await startAdmin(t);
  const half = await connectRaw(t, port);
  half.write('POST /quitquitquit HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n');
  await httpRequest(port, '/ready');
  await Promise.all([server.close(1), server.close(1)]);
  await half.readToEnd();
  t.not(half.closed, 'open');
  await server.close();
  await new AdminServer(new FakeServices()).close();
});

t.test('the answer to /quitquitquit is sent though the server closes immediately', async (t) => {
  const { services, server, port } = await startAdmin(t);
  let closed: Promise<void> | undefined;
  services.quit = () => {
    closed = server.close(60_000);
  };
  const answer = await rawExchange(port, 'POST /quitquitquit HTTP/1.1\r\nHost: a\r\n\r\n');
  t.match(answer, { text: /^HTTP\/1\.1 200 OK\r\n[\s\S]*connection: close\r\n[\s\S]*OK\n/i, closed: 'end' });
  await closed;
});
