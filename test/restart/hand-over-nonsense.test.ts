// The ends of a hand-over channel against a peer that is slow, dead or malicious: no connection of the peer is kept here, none
// that it does not own is lost, and no descriptor leaks.

import t from 'tap';
import { AddressKind, encodeAddress } from '../../src/io/addresses/address.js';
import type { NativeShim } from '../../src/io/shim.js';
import type { HandedOverConnection } from '../../src/listener/hand-over.js';
import {
  decodeMessage,
  encodeConnection,
  encodeMessage,
  HandOverKind,
} from '../../src/restart/hand-over/hand-over-wire.js';
import { ReceivingChannel } from '../../src/restart/hand-over/receiving-channel.js';
import { SendingChannel } from '../../src/restart/hand-over/sending-channel.js';
import { HandOverReceiver } from '../../src/worker/hand-over/hand-over-receiver.js';
import type { Teardown } from '../e2e/harness/environment.js';
import { pattern, shim, until } from '../native-shim/harness/harness.js';
import { copies, original } from './copies.js';

const NOTHING = new Uint8Array(0);
const GARBAGE = new Uint8Array([99, 0, 0, 0, 0]);

/** The other end of a channel, simulated by the test. */
function peer(t: Teardown, fd: number) {
  const received: string[] = [];
  const socket = shim.watchMessages(fd, {
    onMessage: (bytes, fds) => {
      for (const each of fds) shim.closeDescriptor(each);
      const { kind, key } = decodeMessage(bytes);
      received.push(`${kind} ${key}`);
    },
    onWritable() {},
    onEnd: () => void received.push('end'),
  });
  t.teardown(() => socket.close());
  const send = (kind: HandOverKind, key: number, body?: Uint8Array) => socket.send(encodeMessage(kind, key, body), []);
  return { received, send, socket };
}

function sendingEnd(t: Teardown, { answerMs = 60_000, descriptors = 64 } = {}) {
  const [here, there] = shim.socketPair();
  const log: string[] = [];
  const channel = new SendingChannel(shim, here, { answerMs, descriptors }, () => void log.push('room'));
  t.teardown(() => channel.close());
  const offer = (name: string, input: Uint8Array = NOTHING, listener = 'any') =>
    channel.offer(handedOver(shim.duplicate(original), input, listener), {
      moved: () => void log.push(`${name} left`),
      kept: (why) => void log.push(`${name} stays: ${why}`),
    });
  return { channel, log, offer, there };
}

function receivingEnd(t: Teardown) {
  const [here, there] = shim.socketPair();
  let fail!: (errno: number) => void;
  const watched: NativeShim = {
    ...shim,
    watchMessages: (fd, events) => {
      fail = (errno) => events.onEnd(errno);
      return shim.watchMessages(fd, events);
    },
  };
  const log: string[] = [];
  const channel = new ReceivingChannel(watched, here, {
    prepareTakeOver: ({ facts, input }) => {
      const name = `${facts.listener} (${input.length})`;
      log.push(`${name} expected`);
      return { begin: () => void log.push(`${name} begins`), drop: () => void log.push(`${name} dropped`) };
    },
    ended: (why) => void log.push(`ended: ${why}`),
  });
  t.teardown(() => channel.close());
  const parent = peer(t, there);
  const offer = (key: number, name: string, input: Uint8Array = NOTHING) => {
    const messages = encodeConnection(key, handedOver(original, input, name));
    for (const [index, message] of messages.entries()) {
      parent.socket.send(message, index === messages.length - 1 ? [original] : []);
    }
  };
  return { channel, fail, log, offer, parent };
}

const LATE = 'the child process has not answered in time';

t.test('a child that sends an unexpected answer gets no more offers, and keeps its connections', async (t) => {
  const nonsense: [what: string, send: (child: ReturnType<typeof peer>) => void][] = [
    ['an invalid message', (child) => child.socket.send(GARBAGE, [original])],
    ['a message that only a parent sends', (child) => child.send(HandOverKind.Commit, 2)],
    ['Begun without a commit', (child) => child.send(HandOverKind.Begun, 2)],
    ['Refuse after Accept', (child) => child.send(HandOverKind.Refuse, 1)],
    ['Accept twice', (child) => child.send(HandOverKind.Accept, 1)],
  ];
  for (const [what, send] of nonsense) {
    const before = copies();
    const { channel, log, offer, there } = sendingEnd(t);
    const child = peer(t, there);
    offer('first');
    offer('second');
    child.send(HandOverKind.Accept, 1);
    await until(() => child.received.includes(`${HandOverKind.Commit} 1`), 'the first one to be committed');
    send(child);
    await until(() => child.received.includes(`${HandOverKind.Abort} 2`), `the second one to be aborted after ${what}`);
    t.ok(channel.hasEnded, what);
    t.equal(channel.room, 0);
    t.ok(log.includes(`second stays: ${LATE}`));
    child.send(HandOverKind.Accept, 2);
    child.send(HandOverKind.Begun, 1);
    await until(() => log.includes('first left'), 'the first one to leave');
    t.same(
      log.filter((text) => text !== 'room'),
      [`second stays: ${LATE}`, 'first left'],
      'an Accept that has crossed the Abort changes nothing',
    );
    offer('third');
    t.equal(log.at(-1), 'third stays: the child takes no more connections');
    t.equal(copies(), before, 'no descriptor is left');
  }
});

t.test('the end of a child returns all connections that have not begun, and ends the offers', async (t) => {
  const { channel, log, offer, there } = sendingEnd(t);
  const child = peer(t, there);
  offer('first');
  await until(() => child.received.includes(`${HandOverKind.Offer} 1`), 'the offer');
  child.socket.close();
  await until(() => log.length > 0, 'the end of the child');
  t.same(log, ['first stays: the child process has closed the channel', 'room']);
  t.equal(channel.room, 0);
  offer('second');
  t.equal(log.at(-1), 'second stays: the child takes no more connections');
});

t.test('a child that has accepted in time has no time limit to begin', async (t) => {
  const [patient, measure] = [sendingEnd(t, { answerMs: 20 }), sendingEnd(t, { answerMs: 20 })];
  const child = peer(t, patient.there);
  peer(t, measure.there);
  patient.offer('first');
  child.send(HandOverKind.Accept, 1);
  await until(() => child.received.includes(`${HandOverKind.Commit} 1`), 'the commit');
  measure.offer('late');
  await until(() => measure.channel.hasEnded, 'the end of its time');
  t.notOk(patient.channel.hasEnded);
  child.send(HandOverKind.Begun, 1);
  await until(() => patient.log.includes('first left'), 'the connection to leave');
});

t.test('connections in flight are limited, and answers make room', async (t) => {
  const before = copies();
  const { channel, log, offer, there } = sendingEnd(t, { descriptors: 4 });
  const child = peer(t, there);
  t.equal(channel.room, 2, 'for connections of two sockets');
  offer('small');
  t.equal(channel.room, 1);
  offer('large', pattern(40_000));
  t.equal(channel.room, 0, 'bytes count too');
  await until(() => child.received.includes(`${HandOverKind.Offer} 2`), 'both offers');
  t.equal(copies(), before, 'descriptors are given away with them');
  child.send(HandOverKind.Refuse, 2, Buffer.from('for a reason'));
  await until(() => log.includes('large stays: for a reason'), 'the refusal');
  t.equal(channel.room, 1);
  t.equal(log.at(-1), 'room');
  child.send(HandOverKind.Accept, 1);
  await until(() => child.received.includes(`${HandOverKind.Commit} 1`), 'the commit');
  child.send(HandOverKind.Begun, 1);
  await until(() => log.includes('small left'), 'the end');
  t.equal(channel.room, 2);
});

t.test('a connection whose description exceeds a message stays with its descriptors', async (t) => {
  const before = copies();
  const { log, offer } = sendingEnd(t);
  offer('long', undefined, 'l'.repeat(100_000));
  t.match(log, [/^long stays: .* does not fit in a message/]);
  t.equal(copies(), before);
});

t.test('when a thread ends, offered connections belong to the child, the others stay', async (t) => {
  const before = copies();
  const { channel, log, offer } = sendingEnd(t);
  offer('whole');
  offer('in part', pattern(4 << 20));
  channel.close();
  t.same(log, ['whole left', 'in part stays: this process ends']);
  t.equal(copies(), before);
});

t.test('an offer that the child has not completely read in time is withdrawn', async (t) => {
  const before = copies();
  const { channel, log, offer, there } = sendingEnd(t, { answerMs: 20 });
  offer('in part', pattern(4 << 20));
  await until(() => log.includes(`in part stays: ${LATE}`), 'the end of its time');
  t.ok(channel.hasEnded);
  t.equal(copies(), before);
  const child = peer(t, there);
  await until(() => child.received.includes(`${HandOverKind.Abort} 1`), 'the child to read on');
  t.notOk(child.received.includes(`${HandOverKind.Offer} 1`));
});

t.test('a parent that violates the protocol loses the channel, and none of its offers begins', async (t) => {
  const nonsense: [what: string, send: (parent: ReturnType<typeof peer>) => void][] = [
    ['an invalid message', (parent) => parent.socket.send(GARBAGE, [original])],
    ['a message that only a child sends', (parent) => parent.send(HandOverKind.Accept, 1)],
    ['Commit without an offer', (parent) => parent.send(HandOverKind.Commit, 2)],
    ['unexpected descriptors', (parent) => parent.socket.send(encodeMessage(HandOverKind.Commit, 1), [original])],
    [
      'an Offer without its bytes',
      (parent) =>
        parent.socket.send(encodeConnection(2, handedOver(original, pattern(5), 'second')).at(-1)!, [original]),
    ],
  ];
  for (const [what, send] of nonsense) {
    const before = copies();
    const { log, offer, parent } = receivingEnd(t);
    offer(1, 'first');
    await until(() => parent.received.includes(`${HandOverKind.Accept} 1`), 'the answer');
    send(parent);
    await until(() => parent.received.includes('end'), `the end after ${what}`);
    t.match(log, ['first (0) expected', 'first (0) dropped', /^ended: .+/], what);
    t.notOk(parent.received.includes(`${HandOverKind.Begun} 1`));
    t.equal(copies(), before, 'no descriptor is left');
  }
});

t.test('an aborted offer is dropped with its received pieces', async (t) => {
  const { log, offer, parent } = receivingEnd(t);
  offer(1, 'first', pattern(5));
  parent.send(HandOverKind.Abort, 1);
  parent.send(HandOverKind.Piece, 1, pattern(7));
  parent.send(HandOverKind.Abort, 1);
  offer(1, 'again');
  parent.send(HandOverKind.Commit, 1);
  await until(() => parent.received.includes(`${HandOverKind.Begun} 1`), 'the committed offer');
  t.same(log, ['first (5) expected', 'first (5) dropped', 'again (0) expected', 'again (0) begins']);
});

t.test("a failed channel does not prove the parent's end: its offers are dropped", async (t) => {
  const { fail, log, offer, parent } = receivingEnd(t);
  offer(1, 'first');
  await until(() => parent.received.includes(`${HandOverKind.Accept} 1`), 'the answer');
  fail(5);
  t.same(log, ['first (0) expected', 'first (0) dropped', 'ended: errno 5']);
});

t.test('a thread that ends drops connections that have not begun', async (t) => {
  const { channel, log, offer, parent } = receivingEnd(t);
  offer(1, 'first');
  await until(() => parent.received.includes(`${HandOverKind.Accept} 1`), 'the answer');
  channel.close();
  channel.close();
  t.same(log, ['first (0) expected', 'first (0) dropped']);
});

t.test('an invalid channel is closed, and the others are used', async (t) => {
  const before = copies();
  const [here, there] = shim.socketPair();
  const path = `@baton-test-${process.pid}-no-channel`;
  const openDatagrams = () => shim.openMeetingSocket(encodeAddress({ kind: AddressKind.Unix, ip: '', port: 0, path }));
  // No connection arrives, so nothing else is used.
  const unused = {} as never;
  const arrivals = new HandOverReceiver(shim, unused, unused, unused, [
    shim.duplicate(original),
    openDatagrams(),
    here,
  ]);
  t.teardown(() => arrivals.close());
  t.equal(copies(), before, 'the file is closed');
  shim.closeDescriptor(openDatagrams());
  const parent = peer(t, there);
  parent.send(HandOverKind.Commit, 1);
  await until(() => parent.received.includes('end'), 'the end of the channel');
});

function handedOver(fd: number, input: Uint8Array, listener: string): HandedOverConnection {
  const remote = { kind: 0, ip: '', port: 0, path: '' };
  return {
    facts: { listener, fingerprint: '', remote, local: '', startMonotonicMs: 0, progress: {} },
    sockets: [{ fd, pending: NOTHING, ended: false, finAsked: false }],
    input,
  };
}
