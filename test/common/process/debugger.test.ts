// A SIGUSR1 before the program has a listener for it opens Node's debugger port. The port is closed however slow the start
// is: Node 22 and newer open it once more, in the first turn of the event loop, after it was closed.

import { spawnSync } from 'node:child_process';
import t from 'tap';

const SIGNALS = new URL('../../../src/common/process/signals.js', import.meta.url).href;

/** A start that blocks the thread for longer than Signals waits for a late debugger. */
const SLOW_START = `
  import inspector from 'node:inspector';
  const busy = (ms) => { for (const end = performance.now() + ms; performance.now() < end; ); };
  process.kill(process.pid, 'SIGUSR1');
  const opens = performance.now() + 20_000;
  while (inspector.url() === undefined && performance.now() < opens) busy(1);
  const { Signals } = await import('${SIGNALS}');
  const wasOpen = inspector.url() !== undefined;
  const signals = new Signals();
  busy(1200);
  const received = [];
  signals.handle((name) => received.push(name));
  setTimeout(() => console.log(JSON.stringify({ wasOpen, url: inspector.url(), received: received[0] })), 300);
`;

t.test('a debugger port opened before the listener was set is closed and stays closed', async (t) => {
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', SLOW_START], {
    encoding: 'utf8',
    env: { ...process.env, NODE_OPTIONS: '--inspect-port=0' },
  });
  t.strictSame(JSON.parse(stdout), { wasOpen: true, received: 'SIGUSR1' }, stderr);
});
