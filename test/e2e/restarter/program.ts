// The program that the wrapper runs in its tests: it executes the test's commands from a TCP connection.

import { spawnSync } from 'node:child_process';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { setImmediate } from 'node:timers/promises';
import { AddressKind, encodeAddress } from '../../../src/io/addresses/address.js';
import { loadShim } from '../../../src/io/shim.js';

const { RESTART_EPOCH: epoch, NOTIFY_SOCKET: notify, WATCHDOG_USEC: usec, WATCHDOG_PID: watchdogPid } = process.env;
const control = connect(Number(process.argv[2]), '127.0.0.1');
const unix = (path: string) => encodeAddress({ kind: AddressKind.Unix, ip: '', port: 0, path });
let isDeaf = false;

for (const signal of ['SIGTERM', 'SIGUSR1', 'SIGHUP', 'SIGINT'] as const) {
  process.on(signal, () => {
    report(signal);
    if (signal === 'SIGTERM' && !isDeaf) control.end(() => process.exit(0));
  });
}
// The test has ended.
control.on('close', () => process.exit(1));
report(
  JSON.stringify({ epoch: Number(epoch), pid: process.pid, args: process.argv.slice(3), notify, usec, watchdogPid }),
);

createInterface({ input: control }).on('line', async (line) => {
  const [command, ...rest] = line.split(' ');
  const argument = rest.join(' ');
  if (command === 'notify') await sendNotification(argument);
  else if (command === 'exit') process.exit(Number(argument));
  else if (command === 'ignore-sigterm') isDeaf = true;
  else if (command === 'leave-orphan') spawnSync('sh', ['-c', `sleep ${argument} &`], { stdio: 'ignore' });
  report(`done: ${line}`);
});

function report(line: string): void {
  control.write(`${line}\n`);
}

async function sendNotification(assignments: string): Promise<void> {
  const shim = loadShim();
  const own = shim.watchMessages(shim.openMeetingSocket(unix(`@baton-test-program-${process.pid}`)), {
    onMessage() {},
    onWritable() {},
    onEnd() {},
  });
  // The socket may be full of other messages.
  while (!own.sendTo(unix(notify!), Buffer.from(assignments.replaceAll(' ', '\n')), [])) await setImmediate();
  own.close();
}
