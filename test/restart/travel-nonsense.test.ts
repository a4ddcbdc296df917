// The ends of a channel on which connections travel, against a peer that is slow, gone, or talks nonsense: nothing that it may have
// is kept here, nothing that it has not is lost, and no descriptor stays.

import t from 'tap';
import { AddressKind, encodeAddress } from '../../src/io/addresses/address.js';
import type { NativeShim } from '../../src/io/shim.js';
import type { Cargo } from '../../src/listener/travel.js';
import { ArrivalChannel } from '../../src/restart/travel/arrival-channel.js';
import { DepartureChannel } from '../../src/restart/travel/departure-channel.js';
import { decodeMessage, encodeCargo, encodeMessage, TravelKind } from '../../src/restart/travel/travel-wire.js';
import { WorkerArrivals } from '../../src/worker/hand-over/worker-arrivals.js';
import type { Teardown } from '../e2e/harness/environment.js';
import { pattern, shim, until } from '../native-shim/harness/harness.js';
import { copies, original } from './copies.js';

const NOTHING = new Uint8Array(0);
const GARBAGE = new Uint8Array([99, 0, 0, 0, 0]);

/** The other end of a channel, as the test plays it. */
function peer(t: Teardown, fd: number) {
  const heard: string[] = [];
  const socket = shim.watchMessages(fd, {
    onMessage: (bytes, fds) => {
      for (const each of fds) shim.closeDescriptor(each);
      const { kind, key } = decodeMessage(bytes);
      heard.push(`${kind} ${key}`);
    },
    onWritable() {},
    onEnd: () => void heard.push('end'),
  });
  t.teardown(() => socket.close());
  const say = (kind: TravelKind, key: number, body?: Uint8Array) => socket.send(encodeMessage(kind, key, body), []);
  return { heard, say, socket };
}

function departing(t: Teardown, { answerMs = 60_000, descriptors = 64 } = {}) {
  const [here, there] = shim.socketPair();
  const log: string[] = [];
  const channel = new DepartureChannel(shim, here, { answerMs, descriptors }, () => void log.push('room'));
  t.teardown(() => channel.close());
  const offer = (name: string, input: Uint8Array = NOTHING, listener = 'any') =>
    channel.offer(cargo(shim.duplicate(original), input, listener), {
      left: () => void log.push(`${name} left`),
      stays: (why) => void log.push(`${name} stays: ${why}`),
    });
  return { channel, log, offer, there };
}

function arriving(t: Teardown) {
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
  const channel = new ArrivalChannel(watched, here, {
    expect: ({ facts, input }) => {
      const name = `${facts.listener} (${input.length})`;
      log.push(`${name} expected`);
      return { begin: () => void log.push(`${name} begins`), drop: () => void log.push(`${name} dropped`) };
    },
    ended: (why) => void log.push(`ended: ${why}`),
  });
  t.teardown(() => channel.close());
  const parent = peer(t, there);
  const offer = (key: number, name: string, input: Uint8Array = NOTHING) => {
    const messages = encodeCargo(key, cargo(original, input, name));
    for (const [index, message] of messages.entries()) {
      parent.socket.send(message, index === messages.length - 1 ? [original] : []);
    }
  };
  return { channel, fail, log, offer, parent };
}

const LATE = 'the child process has not answered in time';

t.test('a child that answers what was not said is offered no more, and has what it was given', async (t) => {
  const nonsense: [what: string, say: (child: ReturnType<typeof peer>) => void][] = [
    ['bytes that are no message', (child) => child.socket.send(GARBAGE, [original])],
    ['what only a parent says', (child) => child.say(TravelKind.Commit, 2)],
    ['Begun for what is not committed', (child) => child.say(TravelKind.Begun, 2)],
    ['Refuse behind Accept', (child) => child.say(TravelKind.Refuse, 1)],
    ['Accept twice', (child) => child.say(TravelKind.Accept, 1)],
  ];
  for (const [what, say] of nonsense) {
    const before = copies();
    const { channel, log, offer, there } = departing(t);
    const child = peer(t, there);
    offer('first');
    offer('second');
    child.say(TravelKind.Accept, 1);
    await until(() => child.heard.includes(`${TravelKind.Commit} 1`), 'the first one to be committed');
    say(child);
    await until(() => child.heard.includes(`${TravelKind.Abort} 2`), `the second one to be taken back after ${what}`);
    t.ok(channel.hasEnded, what);
    t.equal(channel.room, 0);
    t.ok(log.includes(`second stays: ${LATE}`));
    child.say(TravelKind.Accept, 2);
    child.say(TravelKind.Begun, 1);
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

t.test('a child that is gone gives back all that has not begun, and is offered no more', async (t) => {
  const { channel, log, offer, there } = departing(t);
  const child = peer(t, there);
  offer('first');
  await until(() => child.heard.includes(`${TravelKind.Offer} 1`), 'the offer');
  child.socket.close();
  await until(() => log.length > 0, 'the end of the child');
  t.same(log, ['first stays: the child process has gone', 'room']);
  t.equal(channel.room, 0);
  offer('second');
  t.equal(log.at(-1), 'second stays: the child takes no more connections');
});

t.test('a child that has accepted in time may take its time to begin', async (t) => {
  const [patient, measure] = [departing(t, { answerMs: 20 }), departing(t, { answerMs: 20 })];
  const child = peer(t, patient.there);
  peer(t, measure.there);
  patient.offer('first');
  child.say(TravelKind.Accept, 1);
  await until(() => child.heard.includes(`${TravelKind.Commit} 1`), 'the commit');
  measure.offer('late');
  await until(() => measure.channel.hasEnded, 'the end of its time');
  t.notOk(patient.channel.hasEnded);
  child.say(TravelKind.Begun, 1);
  await until(() => patient.log.includes('first left'), 'the connection to leave');
});

t.test('no more is under way than the child has room for, and what it answers makes room', async (t) => {
  const before = copies();
  const { channel, log, offer, there } = departing(t, { descriptors: 4 });
  const child = peer(t, there);
  t.equal(channel.room, 2, 'for connections of two sockets');
  offer('small');
  t.equal(channel.room, 1);
  offer('large', pattern(40_000));
  t.equal(channel.room, 0, 'bytes count too');
  await until(() => child.heard.includes(`${TravelKind.Offer} 2`), 'both offers');
  t.equal(copies(), before, 'descriptors are given away with them');
  child.say(TravelKind.Refuse, 2, Buffer.from('for a reason'));
  await until(() => log.includes('large stays: for a reason'), 'the refusal');
  t.equal(channel.room, 1);
  t.equal(log.at(-1), 'room');
  child.say(TravelKind.Accept, 1);
  await until(() => child.heard.includes(`${TravelKind.Commit} 1`), 'the commit');
  child.say(TravelKind.Begun, 1);
  await until(() => log.includes('small left'), 'the end');
  t.equal(channel.room, 2);
});

t.test('what is known of a connection and fits in no message stays, and with it its descriptors', async (t) => {
  const before = copies();
  const { log, offer } = departing(t);
  offer('long', undefined, 'l'.repeat(100_000));
  t.match(log, [/^long stays: .* does not fit in a message/]);
  t.equal(copies(), before);
});

t.test('a thread that ends has given away what is with the child, and keeps what is not', async (t) => {
  const before = copies();
  const { channel, log, offer } = departing(t);
  offer('whole');
  offer('in part', pattern(4 << 20));
  channel.close();
  t.same(log, ['whole left', 'in part stays: this process ends']);
  t.equal(copies(), before);
});

t.test('an offer that a child has not read as a whole in time is none any more', async (t) => {
  const before = copies();
  const { channel, log, offer, there } = departing(t, { answerMs: 20 });
  offer('in part', pattern(4 << 20));
  await until(() => log.includes(`in part stays: ${LATE}`), 'the end of its time');
  t.ok(channel.hasEnded);
  t.equal(copies(), before);
  const child = peer(t, there);
  await until(() => child.heard.includes(`${TravelKind.Abort} 1`), 'the child to read on');
  t.notOk(child.heard.includes(`${TravelKind.Offer} 1`));
});

t.test('a parent that says what makes no sense loses the channel, and nothing of it begins', async (t) => {
  const nonsense: [what: string, say: (parent: ReturnType<typeof peer>) => void][] = [
    ['bytes that are no message', (parent) => parent.socket.send(GARBAGE, [original])],
    ['what only a child says', (parent) => parent.say(TravelKind.Accept, 1)],
    ['Commit for what was not offered', (parent) => parent.say(TravelKind.Commit, 2)],
    [
      'descriptors that belong to nothing',
      (parent) => parent.socket.send(encodeMessage(TravelKind.Commit, 1), [original]),
    ],
    [
      'an Offer without its bytes',
      (parent) => parent.socket.send(encodeCargo(2, cargo(original, pattern(5), 'second')).at(-1)!, [original]),
    ],
  ];
  for (const [what, say] of nonsense) {
    const before = copies();
    const { log, offer, parent } = arriving(t);
    offer(1, 'first');
    await until(() => parent.heard.includes(`${TravelKind.Accept} 1`), 'the answer');
    say(parent);
    await until(() => parent.heard.includes('end'), `the end after ${what}`);
    t.match(log, ['first (0) expected', 'first (0) dropped', /^ended: .+/], what);
    t.notOk(parent.heard.includes(`${TravelKind.Begun} 1`));
    t.equal(copies(), before, 'no descriptor is left');
  }
});

t.test('what the parent takes back is let go of, with what had come of it', async (t) => {
  const { log, offer, parent } = arriving(t);
  offer(1, 'first', pattern(5));
  parent.say(TravelKind.Abort, 1);
  parent.say(TravelKind.Piece, 1, pattern(7));
  parent.say(TravelKind.Abort, 1);
  offer(1, 'again');
  parent.say(TravelKind.Commit, 1);
  await until(() => parent.heard.includes(`${TravelKind.Begun} 1`), 'the one that is committed');
  t.same(log, ['first (5) expected', 'first (5) dropped', 'again (0) expected', 'again (0) begins']);
});

t.test('a channel that fails is no sign that the parent is gone: what it has offered is let go of', async (t) => {
  const { fail, log, offer, parent } = arriving(t);
  offer(1, 'first');
  await until(() => parent.heard.includes(`${TravelKind.Accept} 1`), 'the answer');
  fail(5);
  t.same(log, ['first (0) expected', 'first (0) dropped', 'ended: errno 5']);
});

t.test('a thread that ends lets go of what has not begun', async (t) => {
  const { channel, log, offer, parent } = arriving(t);
  offer(1, 'first');
  await until(() => parent.heard.includes(`${TravelKind.Accept} 1`), 'the answer');
  channel.close();
  channel.close();
  t.same(log, ['first (0) expected', 'first (0) dropped']);
});

t.test('what is no channel is closed, and the others are used', async (t) => {
  const before = copies();
  const [here, there] = shim.socketPair();
  const path = `@baton-test-${process.pid}-no-channel`;
  const openDatagrams = () => shim.openMeetingSocket(encodeAddress({ kind: AddressKind.Unix, ip: '', port: 0, path }));
  // No connection arrives: nothing else is asked for anything.
  const unused = {} as never;
  const arrivals = new WorkerArrivals(shim, unused, unused, unused, [shim.duplicate(original), openDatagrams(), here]);
  t.teardown(() => arrivals.close());
  t.equal(copies(), before, 'the file is closed');
  shim.closeDescriptor(openDatagrams());
  const parent = peer(t, there);
  parent.say(TravelKind.Commit, 1);
  await until(() => parent.heard.includes('end'), 'the end of the channel');
});

function cargo(fd: number, input: Uint8Array, listener: string): Cargo {
  const remote = { kind: 0, ip: '', port: 0, path: '' };
  return {
    facts: { listener, fingerprint: '', remote, local: '', startMonotonicMs: 0, progress: {} },
    sockets: [{ fd, pending: NOTHING, ended: false, finAsked: false }],
    input,
  };
}
