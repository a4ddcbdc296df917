// Without descriptors accepting rests, turns no circles, and goes on by itself when some are free.

import { spawn } from 'node:child_process';
import { connect, type Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { endsWithTest } from '../e2e/harness/environment.js';
import { until } from './harness.js';
import type { StarvedMessage } from './starved-server.js';

const EMFILE = 24;

t.test('accept pauses and recovers when descriptors run out', async (t) => {
  const server = spawn(
    'sh',
    [
      '-c',
      'ulimit -n 64 && exec "$0" "$@"',
      process.execPath,
      fileURLToPath(new URL('./starved-server.js', import.meta.url)),
    ],
    { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] },
  );
  endsWithTest(t, server);
  const told: StarvedMessage[] = [];
  server.on('message', (message) => told.push(message as StarvedMessage));
  const of = <What extends StarvedMessage['what']>(what: What) =>
    told.filter((message): message is Extract<StarvedMessage, { what: What }> => message.what === what);
  const accepted = () => of('accepted').length;
  await until(() => of('listening').length === 1, 'the server');

  const count = 80;
  const peers: Socket[] = [];
  for (let i = 0; i < count; i++) {
    const peer = connect(of('listening')[0]!.port, '127.0.0.1');
    peer.on('error', () => undefined);
    peers.push(peer);
  }
  await until(() => of('failed').length > 0, 'the failure');
  t.equal(of('failed')[0]!.errno, EMFILE);
  const full = accepted();
  t.ok(full > 10 && full < 64, `${full} were accepted`);

  server.send('measure');
  await until(() => of('cpu').length === 1, 'the measurement');
  const { usedMs, elapsedMs } = of('cpu')[0]!;
  t.ok(usedMs < elapsedMs / 4, `${usedMs} ms of CPU in ${elapsedMs} ms`);
  t.equal(of('failed').length, 1, 'told once');
  t.equal(accepted(), full);

  // Freed elsewhere: found by trying again.
  server.send('free');
  await until(() => accepted() === full + 8, 'eight more');
  // Freed by closing connections.
  for (const peer of peers.splice(0, 60)) peer.destroy();
  await until(() => accepted() === count, 'all of them');
  for (const peer of peers) peer.destroy();
  server.send('end');
  const status = await new Promise((resolve) => server.once('exit', resolve));
  t.equal(status, 0);
});
