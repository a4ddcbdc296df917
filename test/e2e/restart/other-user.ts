// Run as another user: attacks the restart sockets of epoch 0 at the path in the first argument, and prints the outcome as
// JSON. The second argument is how often each datagram is sent.

import { AddressKind, encodeAddress } from '../../../src/io/addresses/address.js';
import { loadShim } from '../../../src/io/shim.js';
import { encodeHello } from '../../../src/restart/messages.js';
import { HOT_RESTART_VERSION } from '../../../src/restart/version.js';

const [socketPath = '', times = '1'] = process.argv.slice(2);
const shim = loadShim();
const own = `@baton-test-other-${process.pid}`;
const socket = shim.watchMessages(shim.openMeetingSocket(at(own)), { onMessage() {}, onWritable() {}, onEnd() {} });
const outcomes = new Set<string>();
let heard = 0;
const [here, there] = shim.socketPair();
shim.watchMessages(here, { onMessage: () => heard++, onWritable() {}, onEnd() {} });
const hello = encodeHello({ version: HOT_RESTART_VERSION, epoch: 1 });

for (let count = 0; count < Number(times); ) {
  const which = count % 2 === 0 ? 'parent' : 'child';
  try {
    const isSent = socket.sendTo(at(`${socketPath}_${which}_0`), hello, [there]);
    outcomes.add(isSent ? 'sent' : 'full');
    if (isSent) count++;
    else await new Promise((resolve) => setImmediate(resolve));
  } catch (error) {
    outcomes.add(String((error as NodeJS.ErrnoException).code));
    count++;
  }
}
// A reply would arrive at once.
await new Promise((resolve) => setTimeout(resolve, 500));
process.stdout.write(JSON.stringify({ uid: process.getuid!(), outcomes: [...outcomes], heard }));
process.exit(0);

function at(path: string): Uint8Array {
  return encodeAddress({ kind: AddressKind.Unix, ip: '', port: 0, path });
}
