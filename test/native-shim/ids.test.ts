// A stale id never affects a new connection.

import t from 'tap';
import { Event, ID_SLOT_MASK, Op } from '../../src/io/shim.js';
import { internet, loopback, Rig, socketPath, unix, until } from './harness/harness.js';

t.test('submissions for a closed id do nothing, even when its slot is in use again', async (t) => {
  const rig = new Rig({ maxSubmissions: 64 });
  const { address } = rig.listen(unix(socketPath()));
  const first = await rig.pair(address);
  const stale = first.client;
  rig.now(Op.Reset, stale);

  // Open connections until the slot is used again.
  let again = -1;
  const slots = new Set<number>();
  while (again < 0) {
    const { client, server } = await rig.pair(address);
    slots.add(client & ID_SLOT_MASK);
    for (const id of [client, server]) {
      if ((id & ID_SLOT_MASK) === (stale & ID_SLOT_MASK)) again = id;
      else rig.submit(Op.Reset, id);
    }
    rig.flush();
  }
  t.not(again, stale, 'the generation differs');
  t.ok(slots.size > 500, 'slots rest before they are reused');
  rig.close();
});

t.test(
  'later events of a batch for a closed connection are not attributed to one opened in the same batch',
  async (t) => {
    const rig = new Rig({ maxSubmissions: 2048 });
    t.teardown(() => rig.close());
    const { address } = rig.listen(unix(socketPath()));
    const [one, other] = [await rig.pair(address), await rig.pair(address)];
    // More than the number of slots that rest before reuse.
    const many: number[] = [];
    while (many.length < 1100) many.push(...Object.values(await rig.pair(address)));
    for (const { server } of [one, other]) rig.submit(Op.Pause, server);
    rig.flush();
    for (const { client } of [one, other]) rig.sendNow(client, 'x');
    let made = -1;
    rig.onEvent = ({ kind, id }) => {
      if (kind !== Event.Data || made >= 0) return;
      for (const given of [id === one.server ? other.server : one.server, ...many]) rig.submit(Op.Reset, given);
      rig.flush();
      made = rig.connect(address);
    };
    for (const { server } of [one, other]) rig.submit(Op.Resume, server);
    rig.flush();
    await until(() => made >= 0, 'bytes');
    await rig.next(Event.Connected, made);
    const [first, second] = rig.of(Event.Data);
    t.equal(first?.batch, second?.batch);
    t.not(made & ID_SLOT_MASK, second!.id & ID_SLOT_MASK);
  },
);

t.test('a stale id affects no connection', async (t) => {
  const rig = new Rig();
  const { address } = rig.listen(unix(socketPath()));
  let stale = -1;
  let client = -1;
  let server = -1;
  // Until a new connection has a slot whose earlier id is known.
  const earlier = new Map<number, number>();
  while (stale < 0) {
    const pair = await rig.pair(address);
    const known = earlier.get(pair.client & ID_SLOT_MASK);
    if (known !== undefined) {
      stale = known;
      ({ client, server } = pair);
      break;
    }
    for (const id of [pair.client, pair.server]) {
      earlier.set(id & ID_SLOT_MASK, id);
      rig.submit(Op.Reset, id);
    }
    rig.flush();
  }
  rig.seen.length = 0;
  for (const op of [Op.Pause, Op.Shutdown, Op.Reset, Op.Close, Op.Watermark]) rig.submit(op, stale);
  rig.send(stale, 'poison');
  rig.send(client, 'good');
  rig.flush();
  await until(() => rig.received(server).length >= 4, 'the good bytes');
  t.equal(rig.received(server).toString(), 'good');
  t.equal(rig.transport.localAddress(stale).length, 0);
  t.equal(rig.transport.pendingBytes(stale), 0);
  t.ok(rig.transport.localAddress(client).length > 0);
  rig.close();
});

t.test('unknown ids, and listeners, are not connections', async (t) => {
  const rig = new Rig();
  const { id, address } = rig.listen(internet('127.0.0.1'));
  for (const wrong of [id, 12345, -1, 2 ** 31 - 1, -(2 ** 31)]) {
    for (const op of [Op.Pause, Op.Resume, Op.Shutdown, Op.Reset, Op.Close, Op.Watermark]) rig.submit(op, wrong);
    rig.send(wrong, 'nothing');
  }
  rig.flush();
  rig.transport.setAccepting(999, false);
  rig.transport.removeListener(999, true);
  const { server } = await rig.pair(address);
  t.equal(rig.of(Event.Accept, server)[0]!.listener, id);
  rig.transport.removeListener(server, false);
  t.equal(rig.transport.counts().connections, 2);
  rig.close();
});

t.test(
  'a connect that is cancelled after it succeeded unnoticed reports nothing more, and its peer sees the close',
  async (t) => {
    const rig = new Rig();
    const { address } = rig.listen(loopback);
    const given = Array.from({ length: 50 }, () => rig.connect(address));
    // The kernel has connected them; this thread has not polled yet.
    for (const [index, id] of given.entries()) rig.submit(index % 2 === 0 ? Op.Reset : Op.Close, id);
    rig.flush();
    const kept = rig.connect(address);
    await rig.next(Event.Connected, kept);
    await until(() => rig.of(Event.End).length + rig.of(Event.Reset).length === given.length, 'the ends of the peers');
    t.same(
      rig.seen.filter(({ id }) => given.includes(id)),
      [],
    );
    t.equal(rig.transport.counts().connections, given.length + 2, 'the accepted ones, and the one that was kept');
    rig.close();
  },
);

t.test('a connection that was not redirected has no other destination, and a dead one has none', async (t) => {
  const rig = new Rig();
  const { transport } = rig;
  for (const address of [loopback, internet('::1')]) {
    const { client, server } = await rig.pair(rig.listen(address).address);
    const own = transport.localAddress(server);
    // With connection tracking the kernel knows a destination of every connection.
    for (const id of [client, server]) {
      const found = transport.originalDestination(id);
      t.ok(found.length === 0 || Buffer.compare(found, own) === 0);
    }
    rig.now(Op.Close, client, 0, 0);
    t.equal(transport.originalDestination(client).length, 0);
  }
  t.equal(transport.originalDestination(2 ** 31 - 1).length, 0);
  t.throws(() => transport.originalDestination(-1));
  t.throws(() => transport.originalDestination('1' as never));
  rig.close();
});
