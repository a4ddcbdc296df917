// A server that the test leaves without places in its epoll set; it tells its parent what happens to it.

import { Event, Op } from '../../../src/io/shim.js';
import { loopback, Rig } from './harness.js';

/** What the server tells. */
export type UnwatchedMessage =
  | { what: 'listening'; port: number }
  | { what: 'accepted' }
  | { what: 'failed'; errno: number }
  | { what: 'connected' }
  | { what: 'reset'; errno: number };

export type UnwatchedRequest = 'connect' | 'leave' | 'end';

const tell = (message: UnwatchedMessage) => process.send!(message);
const rig = new Rig({ unlogged: true });
const listener = rig.listen(loopback);
const peers = rig.listen(loopback);
rig.onEvent = ({ id, kind, value }) => {
  if (kind === Event.Accept) tell({ what: 'accepted' });
  if (kind === Event.AcceptFailed && id === listener.id) tell({ what: 'failed', errno: value });
  if (kind === Event.Connected) tell({ what: 'connected' });
  if (kind === Event.Reset) {
    tell({ what: 'reset', errno: value });
    rig.submit(Op.Close, id);
  }
};
tell({ what: 'listening', port: listener.port });

process.on('message', (request: UnwatchedRequest) => {
  if (request === 'connect') rig.connect(peers.address);
  if (request === 'leave') rig.transport.removeListener(listener.id, true);
  if (request === 'end') {
    rig.close();
    process.disconnect();
  }
});
