// An exception in onBatch neither loses nor repeats an event, and reaches uncaughtException.

import t from 'tap';
import { Event, Op } from '../../src/io/shim.js';
import { loopback, Rig, type Seen, until } from './harness/harness.js';

t.test('events before and after the one that threw are handled once', async (t) => {
  const caught: unknown[] = [];
  const listener = (error: unknown) => caught.push(error);
  process.on('uncaughtException', listener);
  t.teardown(() => process.off('uncaughtException', listener));
  const rig = new Rig();
  const { address } = rig.listen(loopback);
  const pairs: { client: number; server: number }[] = [];
  for (let i = 0; i < 40; i++) pairs.push(await rig.pair(address));
  rig.seen.length = 0;
  const batches = rig.batches;
  let thrown = 0;
  rig.onEvent = (event: Seen) => {
    if (event.kind !== Event.Data) return;
    rig.send(event.id, 'answer'); // queued before the throw: still carried out
    if (Number(event.bytes.toString()) % 3 === 0) {
      thrown++;
      throw thrown % 2 ? new Error(`on purpose ${thrown}`) : 'a bare string';
    }
  };
  const servers = new Set(pairs.map((pair) => pair.server));
  pairs.forEach((pair, i) => {
    rig.send(pair.client, String(i));
  });
  rig.onEvent = ((inner) => (event: Seen) => {
    if (servers.has(event.id)) inner(event);
  })(rig.onEvent.bind(undefined) as (event: Seen) => void);
  rig.flush();
  await until(() => pairs.every((pair) => rig.received(pair.client).length >= 6), 'every answer');
  for (const [i, pair] of pairs.entries()) {
    t.equal(rig.of(Event.Data, pair.server).length, 1);
    t.equal(rig.received(pair.server).toString(), String(i));
    t.equal(rig.received(pair.client).toString(), 'answer');
  }
  t.equal(thrown, 14);
  t.equal(caught.length, 14, 'each exception was reported');
  t.ok(rig.batches - batches < 40, 'they arrived in batches');
  rig.close();
});

t.test('an onBatch that always throws still makes progress', async (t) => {
  const caught: unknown[] = [];
  const listener = (error: unknown) => caught.push(error);
  process.on('uncaughtException', listener);
  t.teardown(() => process.off('uncaughtException', listener));
  const rig = new Rig();
  rig.onEvent = () => {
    throw new Error('always');
  };
  const { address } = rig.listen(loopback);
  const { client, server } = await rig.pair(address);
  rig.sendNow(client, 'x');
  await rig.next(Event.Data, server);
  t.equal(caught.length, rig.seen.length);
  rig.close();
});

t.test('closing the transport in the exception handler is safe', async (t) => {
  const rig = new Rig();
  let closed = false;
  const listener = () => {
    rig.close();
    closed = true;
  };
  process.on('uncaughtException', listener);
  t.teardown(() => process.off('uncaughtException', listener));
  const { address } = rig.listen(loopback);
  const { client } = await rig.pair(address);
  rig.onEvent = () => {
    throw new Error('then close');
  };
  rig.sendNow(client, 'x');
  await until(() => closed, 'the handler');
  rig.now(Op.Close, client);
  t.same(rig.transport.counts(), { connections: 0, listeners: 0, closing: 0 });
});
