// A server for which the test exhausts the epoll watches; it reports its events to its parent.

import { Event, Op } from '../../../src/io/shim.js';
import { loopback, Rig } from './harness.js';

/** Messages of the server. */
export type UnwatchedMessage =
  | { what: 'listening'; port: number }
  | { what: 'accepted' }
  | { what: 'failed'; errno: number }
  | { what: 'connected' }
  | { what: 'reset'; errno: number };

export type UnwatchedRequest = 'connect' | 'leave' | 'end';

const report = (message: UnwatchedMessage) => process.send!(message);
const rig = new Rig({ unlogged: true });
const listener = rig.listen(loopback);
const peers = rig.listen(loopback);
rig.onEvent = ({ id, kind, value }) => {
  if (kind === Event.Accept) report({ what: 'accepted' });
  if (kind === Event.AcceptFailed && id === listener.id) report({ what: 'failed', errno: value });
  if (kind === Event.Connected) report({ what: 'connected' });
  if (kind === Event.Reset) {
    report({ what: 'reset', errno: value });
    rig.submit(Op.Close, id);
  }
};
report({ what: 'listening', port: listener.port });

process.on('message', (request: UnwatchedRequest) => {
  if (request === 'connect') rig.connect(peers.address);
  if (request === 'leave') rig.transport.removeListener(listener.id, true);
  if (request === 'end') {
    rig.close();
    process.disconnect();
  }
});
