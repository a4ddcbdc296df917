// Connects, freezes the connection and gives a copy of it to a child process; or, as that child, answers on it.

import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Event, Op } from '../../../src/io/shim.js';
import { internet, Rig, shim } from './harness.js';

const INHERITED = 4;

if (process.argv[2] === 'heir') {
  const rig = new Rig({
    onEvent: (event, rig) => {
      if (event.kind === Event.Data) rig.send(event.id, `heard: ${event.bytes}`);
      if (event.kind !== Event.End) return;
      rig.submit(Op.Close, event.id, 1000);
      setImmediate(() => process.exit(0));
    },
  });
  rig.transport.adopt(INHERITED);
  process.send!({ pid: process.pid });
} else {
  process.once('message', async ({ port }: { port: number }) => {
    const rig = new Rig();
    const id = rig.connect(internet('127.0.0.1', port));
    await rig.next(Event.Connected, id);
    rig.transport.freeze(id);
    const { fd } = rig.transport.copyFrozen(id);
    const heir = fork(fileURLToPath(import.meta.url), ['heir'], { stdio: ['ignore', 'inherit', 'inherit', 'ipc', fd] });
    heir.on('message', (ready) => {
      shim.closeDescriptor(fd);
      process.send!(ready as object);
    });
  });
}
