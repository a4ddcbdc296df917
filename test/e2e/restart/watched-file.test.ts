// --watch-config at a hot restart: the process that serves follows its file, and the one that it has replaced does not.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import {
  type BatonProcess,
  bootstrap,
  connectRaw,
  EpochLine,
  httpListener,
  httpRequest,
  tempDir,
  waitFor,
  waitForLog,
} from '../harness/index.js';
import { answering, managerOf } from '../http/proxy.js';

const ARGS = ['-l', 'info', '--concurrency', '1', '--parent-shutdown-time-s', '600', '--drain-time-s', '600'];

t.test('a process watches its configuration until another one has taken over, and no longer', async (t) => {
  const path = join(tempDir(t), 'config.yaml');
  const write = (text: string) => {
    const listener = httpListener('web', 0, managerOf([answering({ prefix: '/' }, text)]));
    writeFileSync(path, JSON.stringify(bootstrap({ listeners: [listener], clusters: [] })));
  };
  write('first');
  const line = new EpochLine(t);
  const args = ['-c', path, '--watch-config', ...ARGS];
  const parent = await line.start(0, { args });
  const port = await parent.listenerPort('web');
  const answers = (text: string) =>
    waitFor(async () => (await httpRequest(port)).body === text, { what: `the answer ${text}` });
  // Keeps it while it drains.
  await connectRaw(t, port);

  const lost = await line.start(1, { args, wait: 'spawned' });
  await waitForLog(parent, 'a child process of epoch 1 initializes');
  lost.child.kill('SIGKILL');
  await waitForLog(parent, 'this one serves on');
  write('second');
  await answers('second');
  const before = changesSeen(parent);

  const child = await line.start(1, { args });
  await waitForLog(parent, 'closing and draining listeners');
  write('third');
  await answers('third');
  await child.stop();
  await parent.exited;
  t.equal(changesSeen(parent), before);
  t.equal(changesSeen(child), 1);
});

function changesSeen({ stderr }: BatonProcess): number {
  return stderr.split(' has changed').length - 1;
}
