// Processes of other users at the sockets of a restart: nothing from them is accepted or retained, the log stays short, and
// restarts work.

import { execFile } from 'node:child_process';
import { chmodSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import t from 'tap';
import { bootstrap, EpochLine, httpListener, tempDir } from '../harness/index.js';

const ATTACKER = fileURLToPath(new URL('./other-user.js', import.meta.url));
const NOBODY = ['--reuid=65534', '--regid=65534', '--clear-groups'];
const QUICK = ['--parent-shutdown-time-s', '1', '--drain-time-s', '1'];
const TIMES = 20_000;
const ROUTE = { match: { prefix: '/' }, direct_response: { status: 200 } };
const CONFIG = bootstrap({
  listeners: [
    httpListener('web', 0, { route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes: [ROUTE] }] } }),
  ],
  clusters: [],
});

const skip = process.getuid!() === 0 ? false : 'only root can become another user';

async function attack(socketPath: string): Promise<{ uid: number; outcomes: string[]; heard: number }> {
  const args = [...NOBODY, process.execPath, ATTACKER, socketPath, String(TIMES)];
  const { stdout } = await promisify(execFile)('setpriv', args);
  return JSON.parse(stdout);
}

for (const [what, mode, outcomes] of [
  ['an abstract name', undefined, ['sent']],
  ['a path', 0o600, ['EACCES']],
  ['a path writable by all users', 0o666, ['sent']],
] as const) {
  t.test(`messages of another user are ignored at ${what}`, { skip }, async (t) => {
    const directory = tempDir(t);
    chmodSync(directory, 0o755);
    const line = new EpochLine(t, mode === undefined ? undefined : join(directory, 'restart'));
    const args = mode === undefined ? QUICK : [...QUICK, '--socket-mode', mode.toString(8)];
    const parent = await line.start(0, { config: CONFIG, args });
    const port = await parent.listenerPort('web');
    const before = readdirSync(`/proc/${parent.pid}/fd`).length;
    const attacks = await Promise.all([attack(line.socketPath), attack(line.socketPath)]);
    for (const { heard, outcomes: found, uid } of attacks) {
      t.equal(uid, 65534);
      t.equal(heard, 0, 'no reply');
      t.same(
        found.filter((each) => each !== 'full'),
        outcomes,
      );
    }
    const lines = parent.stderr.split('\n');
    t.ok(lines.length < 100, `${lines.length} lines in the log`);
    t.notMatch(parent.stderr, 'a child process of epoch');
    if (outcomes[0] === 'sent') t.match(parent.stderr, /is dropped: process [0-9]+ runs as a uid/);
    t.ok(readdirSync(`/proc/${parent.pid}/fd`).length <= before, 'no descriptor is retained');
    const [during, child] = await Promise.all([attack(line.socketPath), line.start(1, { config: CONFIG, args })]);
    t.equal(during.heard, 0);
    t.equal(await child.listenerPort('web'), port, 'the next process takes over');
    await child.stop();
  });
}
