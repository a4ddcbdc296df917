// When descriptors are short accepting pauses without busy-waiting, leaves a reserve, and resumes on its own when there are
// more.

import { type ChildProcess, execFileSync, type StdioOptions, spawn, spawnSync } from 'node:child_process';
import { closeSync, openSync, readdirSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { endsWithTest } from '../e2e/harness/environment.js';
import { until } from './harness/harness.js';
import type { StarvedMessage } from './harness/starved-server.js';

const EMFILE = 24;

t.test('accept pauses and recovers when descriptors run out', async (t) => {
  const starved = await startServer(t, 64);
  const { server, of, accepted } = starved;
  const { ports } = of('listening')[0]!;
  const count = 80;
  const peers = connectAll(t, ports[0], count);
  await until(() => of('failed').length > 0, 'the failure');
  t.equal(of('failed')[0]!.errno, EMFILE);
  const full = accepted();
  t.ok(full > 10 && full < 64, `${full} were accepted`);
  await rests(t, starved);
  t.equal(accepted(), full);
  t.equal(await isStarved(starved), true);

  // Freed elsewhere: detected by a retry.
  server.send('free');
  await until(() => accepted() === full + 8, 'eight more');
  // Freed by closing connections.
  for (const peer of peers.splice(0, 60)) peer.destroy();
  await until(() => accepted() === count, 'all of them');
  t.equal(await isStarved(starved), false);
  for (const peer of peers) peer.destroy();
  server.send('end');
  const status = await new Promise((resolve) => server.once('exit', resolve));
  t.equal(status, 0);
});

const LIMIT = 200;
const RESERVE = 10;
const MAX_ACCEPTED = LIMIT - 2 * RESERVE;

for (const inherited of [0, 7]) {
  t.test(`accepting leaves twice the reserve, and connecting once, with ${inherited} inherited above`, async (t) => {
    const starved = await startServer(t, LIMIT, { reserve: RESERVE, inherited });
    const { server, of, accepted, open } = starved;
    const { ports } = of('listening')[0]!;
    const peers = connectAll(t, ports[0], LIMIT);
    await until(() => of('failed').length > 0, 'the rest');
    t.equal(of('failed')[0]!.errno, EMFILE);
    t.equal(open(), MAX_ACCEPTED);
    await rests(t, starved);
    t.equal(open(), MAX_ACCEPTED);

    for (let count = 0; count < 2 * RESERVE; count++) server.send('connect');
    await until(() => of('connected').length + of('reset').length === 2 * RESERVE, 'the connects');
    t.equal(of('connected').length, LIMIT - RESERVE - MAX_ACCEPTED);
    t.ok(of('reset').every(({ errno }) => errno === EMFILE));
    t.equal(open(), LIMIT - RESERVE);

    for (const peer of peers) peer.destroy();
    await until(() => accepted() >= LIMIT, 'all of them');
    server.send('end');
    await new Promise((resolve) => server.once('exit', resolve));
  });
}

t.test('with a small limit the reserve is an eighth', async (t) => {
  const limit = 80;
  const { of, open } = await startServer(t, limit, { reserve: 64 });
  connectAll(t, of('listening')[0]!.ports[0], limit);
  await until(() => of('failed').length > 0, 'the rest');
  t.equal(open(), limit - 2 * (limit / 8));
});

t.test('listeners that wait for descriptors get them in turn', async (t) => {
  const { server, of, accepted, open } = await startServer(t, LIMIT, { reserve: RESERVE });
  const { ports } = of('listening')[0]!;
  for (const port of ports) connectAll(t, port, LIMIT);
  await until(() => of('failed').length >= 2, 'both to rest');
  const full = accepted();
  const turns = 20;
  for (let turn = 0; turn < turns; turn++) {
    const before = accepted();
    server.send('drop');
    await until(() => accepted() > before, 'one more');
  }
  t.equal(open(), MAX_ACCEPTED);
  for (const port of ports) {
    const served = of('accepted').filter((each) => each.count > full && each.port === port).length;
    t.ok(served >= turns / 4, `${served} of ${turns} on one of them`);
  }
});

t.test('a transport without descriptors gets some of those that a busy transport frees', async (t) => {
  const { server, of, accepted, open } = await startServer(t, LIMIT, { reserve: RESERVE, apart: true });
  const [busy, idle] = of('listening')[0]!.ports;
  connectAll(t, busy, LIMIT);
  await until(() => of('failed').length > 0, 'the first to rest');
  connectAll(t, idle, LIMIT);
  await until(() => of('failed').length > 1, 'the second to rest');
  const full = accepted();
  const served = (by: number) => of('accepted').filter(({ count, port }) => count > full && port === by).length;
  // Connections are queued at both all the time. A transport may accept one more than it should before it detects how few are
  // left.
  let drops = 0;
  const replaceOne = async () => {
    connectAll(t, busy, 1);
    server.send('drop');
    drops++;
    await until(() => of('dropped').length === drops && open() >= MAX_ACCEPTED, 'its replacement');
  };
  while (served(idle) < 8) await replaceOne();
  t.ok(served(busy) >= 8, `the other transport got ${served(busy)}`);

  // It is registered as waiting, and does not use its share.
  server.send('stop');
  const stoppedAt = served(idle);
  for (let turn = 0; turn < 400; turn++) await replaceOne();
  t.ok(served(idle) <= stoppedAt + 1, 'the other one continues alone');
});

const cannotLimit = spawnSync('prlimit', ['--version']).status === 0 ? false : 'no prlimit';
t.test('a limit that changes meanwhile is obeyed', { skip: cannotLimit }, async (t) => {
  const { server, of, accepted, open } = await startServer(t, LIMIT, { reserve: RESERVE });
  const { ports } = of('listening')[0]!;
  connectAll(t, ports[0], 1);
  await until(() => accepted() === 1, 'the first');
  const lower = LIMIT - 50;
  setLimit(server, lower);
  connectAll(t, ports[0], LIMIT);
  await until(() => of('failed').length > 0, 'the rest');
  t.ok(open() <= lower, `${open()} are open`);
  setLimit(server, LIMIT);
  await until(() => open() === MAX_ACCEPTED, 'the connections that may be accepted now');
});

t.test('a limit that is raised while connections are idle is noticed', { skip: cannotLimit }, async (t) => {
  const { server, of, open } = await startServer(t, LIMIT, { reserve: RESERVE });
  const lower = LIMIT - 50;
  setLimit(server, lower);
  connectAll(t, of('listening')[0]!.ports[0], LIMIT);
  await until(() => of('failed').length > 0, 'the rest');
  t.equal(open(), lower - 2 * RESERVE);
  setLimit(server, LIMIT);
  await until(() => open() === MAX_ACCEPTED, 'the connections that may be accepted now');
});

type Starved = Awaited<ReturnType<typeof startServer>>;

function setLimit({ pid }: ChildProcess, limit: number): void {
  execFileSync('prlimit', [`--pid=${pid}`, `--nofile=${limit}:${LIMIT}`]);
}

/** Checks that it uses hardly any CPU time, and reports nothing again. */
async function rests(t: Test, { server, of }: Starved): Promise<void> {
  server.send('measure');
  await until(() => of('cpu').length === 1, 'the measurement');
  const { usedMs, elapsedMs } = of('cpu')[0]!;
  t.ok(usedMs < elapsedMs / 4, `${usedMs} ms of CPU in ${elapsedMs} ms`);
  t.equal(of('failed').length, 1, 'reported once');
}

async function isStarved({ server, of }: Starved): Promise<boolean> {
  const before = of('starved').length;
  server.send('starved?');
  await until(() => of('starved').length > before, 'the answer');
  return of('starved').at(-1)!.is;
}

/** Starts a server process with that many descriptors; `inherited`: the highest of these numbers are taken. */
async function startServer(t: Test, limit: number, { reserve = 0, inherited = 0, apart = false } = {}) {
  const program = fileURLToPath(new URL('./harness/starved-server.js', import.meta.url));
  const command = [process.execPath, program, `${reserve}`, apart ? 'apart' : 'together'];
  const stdio: StdioOptions = ['ignore', 'inherit', 'inherit', 'ipc'];
  if (inherited > 0) {
    const nothing = openSync('/dev/null', 'r');
    t.teardown(() => closeSync(nothing));
    for (let fd = stdio.length; fd < limit; fd++) stdio.push(fd < limit - inherited ? 'ignore' : nothing);
  }
  const server = spawn('sh', ['-c', `ulimit -n ${limit} && exec "$0" "$@"`, ...command], { stdio });
  endsWithTest(t, server);
  const messages: StarvedMessage[] = [];
  server.on('message', (message) => messages.push(message as StarvedMessage));
  const of = <What extends StarvedMessage['what']>(what: What) =>
    messages.filter((message): message is Extract<StarvedMessage, { what: What }> => message.what === what);
  const accepted = () => of('accepted').length;
  await until(() => of('listening').length === 1, 'the server');
  /** Numbers below the limit: those inherited by this process may be above. */
  const open = () => readdirSync(`/proc/${server.pid}/fd`).filter((fd) => Number(fd) < limit).length;
  return { server, of, accepted, open };
}

function connectAll(t: Test, port: number, count: number): Socket[] {
  const peers = Array.from({ length: count }, () => connect(port, '127.0.0.1'));
  for (const peer of peers) peer.on('error', () => undefined);
  t.teardown(() => {
    for (const peer of peers) peer.destroy();
  });
  return peers;
}
