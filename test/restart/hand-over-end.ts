// One of two processes between which a connection is handed over, on an inherited channel. It kills itself at the given step.
//
// Usage: hand-over-end parent|child <port to connect to> <step>, where a step is such as `before-send-Commit`.

import type { FrozenConnection, MessageSocketEvents, NativeMessageSocket, NativeShim } from '../../src/io/shim.js';
import { Event } from '../../src/io/shim.js';
import type { HandedOverConnection } from '../../src/listener/hand-over.js';
import { HandOverKind } from '../../src/restart/hand-over/hand-over-wire.js';
import { ReceivingChannel } from '../../src/restart/hand-over/receiving-channel.js';
import { SendingChannel } from '../../src/restart/hand-over/sending-channel.js';
import { internet, Rig, shim } from '../native-shim/harness/harness.js';

const CHANNEL = 4;
const ANSWER_MS = 500;
const [role, port, step = ''] = process.argv.slice(2);

const KINDS: Readonly<Record<number, string>> = {
  [HandOverKind.Offer]: 'Offer',
  [HandOverKind.Accept]: 'Accept',
  [HandOverKind.Refuse]: 'Refuse',
  [HandOverKind.Commit]: 'Commit',
  [HandOverKind.Abort]: 'Abort',
  [HandOverKind.Begun]: 'Begun',
};

/** The owner of the connection echoes to its peer. */
const rig: Rig = new Rig({
  onEvent: (event) => {
    if (event.kind === Event.Data) rig.send(event.id, `${role}: ${event.bytes}`);
  },
});

if (role === 'parent') {
  const id = rig.connect(internet('127.0.0.1', Number(port)));
  await rig.next(Event.Connected, id);
  const channel = new SendingChannel(watched(), CHANNEL, { descriptors: 64, answerMs: ANSWER_MS }, () => {});
  process.once('message', () => {
    rig.flush();
    rig.transport.freeze(id);
    const events = {
      moved: () => {
        rig.transport.releaseFrozen(id);
        process.send!('left');
      },
      kept: (why: string) => {
        rig.transport.thaw(id);
        process.send!(`stays: ${why}`);
      },
    };
    const offer = () => {
      const handedOver = { facts: FACTS, sockets: [rig.transport.copyFrozen(id)], input: new Uint8Array(0) };
      channel.offer(handedOver, events);
    };
    process.send!('frozen', offer);
  });
} else {
  new ReceivingChannel(watched(), CHANNEL, {
    prepareTakeOver: ({ sockets: [socket] }) => (step === 'refuses' ? 'for a reason' : prepared(socket!)),
    ended: () => {},
  });
}
process.send!('ready');

function prepared({ fd, ended, finAsked, pending }: FrozenConnection) {
  const as = {
    ended,
    finAsked,
    pending,
    paused: false,
    frozen: true,
    highWatermark: 64 * 1024,
    hardLimit: 0,
    receiveLimit: 1 << 20,
  };
  const id = rig.transport.adopt(shim.duplicate(fd), as);
  return { begin: () => void rig.transport.thaw(id), drop: () => void rig.transport.releaseFrozen(id) };
}

/** The shim, with message sockets on which this process dies or stops at its step. */
function watched(): NativeShim {
  return {
    ...shim,
    watchMessages: (fd: number, events: MessageSocketEvents): NativeMessageSocket => {
      const socket = shim.watchMessages(fd, {
        onMessage: (bytes, fds, credentials) => {
          reached(`before-receive-${KINDS[bytes[0]!]}`);
          events.onMessage(bytes, fds, credentials);
        },
        onWritable: () => events.onWritable(),
        onEnd: (errno) => events.onEnd(errno),
      });
      return {
        send: (bytes, fds) => {
          reached(`before-send-${KINDS[bytes[0]!]}`);
          const sent = socket.send(bytes, fds);
          reached(`after-send-${KINDS[bytes[0]!]}`);
          return sent;
        },
        sendTo: (address, bytes, fds) => socket.sendTo(address, bytes, fds),
        close: () => socket.close(),
      };
    },
  };
}

function reached(where: string): void {
  if (step === where) process.kill(process.pid, 'SIGKILL');
  if (step !== `stops-${where}`) return;
  process.kill(process.pid, 'SIGSTOP');
}

const FACTS: HandedOverConnection['facts'] = {
  listener: 'any',
  fingerprint: '',
  remote: { kind: 0, ip: '', port: 0, path: '' },
  local: '',
  startMonotonicMs: 0,
  progress: {},
};
