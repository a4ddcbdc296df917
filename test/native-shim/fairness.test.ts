// One busy connection starves neither another connection nor libuv's own timers and MessagePorts.

import { MessageChannel } from 'node:worker_threads';
import t from 'tap';
import { ClockWord, Event, Op } from '../../src/io/shim.js';
import { internet, loopback, pattern, Rig, unix, until } from './harness/harness.js';

const SHARE = 128 * 1024;
const LARGE_SHARE = 1024 * 1024;
const ENOUGH = 256 * 1024;

/** Returns a rig in which pairs of connections echo to each other endlessly, so that it always has work. */
async function busyRig(address: Uint8Array, pairs: number) {
  const rig = new Rig({ unlogged: true, uncopied: true });
  const listener = rig.listen(address);
  const accepted: number[] = [];
  const connected: number[] = [];
  const busy = new Set<number>();
  let bytes = 0;
  let watch: ((id: number, bytes: Buffer) => void) | undefined;
  rig.onEvent = (event) => {
    if (event.kind === Event.Accept) accepted.push(event.id);
    if (event.kind === Event.Connected) connected.push(event.id);
    if (event.kind !== Event.Data) return;
    bytes += event.bytes.length;
    if (!busy.has(event.id)) return watch?.(event.id, event.bytes);
    rig.submit(Op.Send, event.id, event.bytes.byteOffset - rig.memory.byteOffset, event.bytes.length);
  };
  const pair = async () => {
    const count = connected.length;
    const client = rig.connect(listener.address);
    await until(() => connected.length > count && accepted.length > count, 'a pair');
    return { client, server: accepted.at(-1)! };
  };
  for (let i = 0; i < pairs; i++) {
    const { client, server } = await pair();
    busy.add(client).add(server);
    rig.sendNow(client, pattern(200_000));
  }
  return {
    rig,
    pair,
    bytes: () => bytes,
    onOther: (handler: (id: number, bytes: Buffer) => void) => {
      watch = handler;
    },
  };
}

for (const [name, address] of [
  ['TCP', loopback],
  ['IPv6', internet('::1')],
  ['Unix', unix(`@baton-shim-fair-${process.pid}`)],
] as const) {
  t.test(`other work is served beside busy connections (${name})`, async (t) => {
    const { rig, pair, bytes, onOther } = await busyRig(address, 3);
    const quiet = await pair();
    const start = bytes();

    let turns = 0;
    onOther((id) => {
      turns++;
      rig.send(id, 'ball');
    });
    rig.sendNow(quiet.client, 'ball');
    await until(() => turns >= 200, 'another connection to be served');

    const { port1, port2 } = new MessageChannel();
    let messages = 0;
    port1.on('message', () => {
      messages++;
      port1.postMessage('');
    });
    port2.on('message', () => port2.postMessage(''));
    port2.postMessage('');
    let timers = 0;
    const timer = setInterval(() => timers++, 1);
    let immediates = 0;
    const again = () => {
      immediates++;
      if (immediates < 50) setImmediate(again);
    };
    setImmediate(again);
    await until(() => messages >= 50 && timers >= 50 && immediates >= 50, 'messages, timers and immediates');
    clearInterval(timer);
    port1.close();
    t.ok(bytes() - start > 1 << 20, 'while the busy ones continued');
    rig.close();
  });
}

t.test('a connection gets at most one Data event per batch, of at most 1 MiB', async (t) => {
  const rig = new Rig();
  const { client, server } = await rig.pair(rig.listen(loopback).address);
  const sent = pattern(4 << 20);
  rig.sendNow(client, sent);
  await until(() => rig.received(server).length === sent.length, 'all bytes');
  t.ok(rig.received(server).equals(sent));
  const data = rig.of(Event.Data, server);
  t.equal(new Set(data.map((event) => event.batch)).size, data.length);
  t.ok(data.every((event) => event.bytes.length <= LARGE_SHARE));
  t.ok(data.every((event) => event.offset % 64 === 0));
  rig.close();
});

t.test(
  'a connection whose share is full eight times gets a large share, and a small one again when it is paused',
  async (t) => {
    // Sent before the reader starts: more than its share is always available.
    const rig = new Rig({ highWatermark: 1 << 30 });
    const { client, server } = await rig.pair(rig.listen(unix(`@baton-shim-share-${process.pid}`)).address);
    const lengths = () => rig.of(Event.Data, server).map((event) => event.bytes.length);
    const full = () => lengths().findIndex((length) => length > SHARE);
    rig.now(Op.Watermark, client, 1 << 30, 0);
    for (const stopped of [false, true]) {
      rig.now(Op.Pause, server);
      const before = lengths().length;
      const sent = pattern(16 << 20, before + 1);
      const received = rig.received(server).length;
      rig.send(client, sent);
      rig.submit(Op.Resume, server);
      if (stopped) {
        // Paused at each event, and resumed in the same batch: its share never grows.
        rig.onEvent = (event) => {
          if (event.kind !== Event.Data) return;
          rig.submit(Op.Pause, server);
          rig.submit(Op.Resume, server);
        };
      }
      rig.flush();
      await until(() => rig.received(server).length === received + sent.length, 'all bytes');
      t.ok(rig.received(server).subarray(received).equals(sent));
      const seen = lengths().slice(before);
      t.ok(seen.slice(0, 8).every((length) => length <= SHARE));
      if (stopped)
        t.ok(
          seen.every((length) => length <= SHARE),
          'a paused one keeps the small share',
        );
      else t.ok(full() >= 8, 'the large share comes after eight full ones');
    }
    rig.close();
  },
);

t.test('a connection receives at most its limit at once, whatever its share', async (t) => {
  const rig = new Rig({ highWatermark: 1 << 30, receiveLimit: 20_000 });
  const { address } = rig.listen(unix(`@baton-shim-limit-${process.pid}`));
  const client = rig.connect(address, undefined, 1 << 30, 0, 40_000);
  const server = (await rig.next(Event.Accept)).id;
  await rig.next(Event.Connected, client);
  /** Returns the largest receive of a connection whose socket never runs empty. */
  const largest = async (reader: number, writer: number) => {
    const before = rig.of(Event.Data, reader).length;
    const received = rig.received(reader).length;
    const sent = pattern(16 << 20, received + 1);
    rig.now(Op.Pause, reader);
    rig.send(writer, sent);
    rig.submit(Op.Resume, reader);
    rig.flush();
    await until(() => rig.received(reader).length === received + sent.length, 'all bytes');
    t.ok(rig.received(reader).subarray(received).equals(sent));
    return Math.max(
      ...rig
        .of(Event.Data, reader)
        .slice(before)
        .map((event) => event.bytes.length),
    );
  };
  t.equal(await largest(server, client), 20_000, 'accepted');
  t.equal(await largest(client, server), 40_000, 'connected');
  rig.now(Op.ReceiveLimit, server, 0);
  t.equal(await largest(server, client), 4096, 'not less than the minimum');
  rig.now(Op.ReceiveLimit, server, 150_000);
  t.equal(await largest(server, client), 150_000, 'a limit above the usual share bounds the large one');

  t.ok(rig.transport.freeze(server));
  const { fd, ...progress } = rig.transport.copyFrozen(server);
  const limits = { highWatermark: 1 << 30, hardLimit: 0, receiveLimit: 30_000 };
  const adopted = rig.transport.adopt(fd, { ...progress, ...limits, paused: false, frozen: false });
  rig.transport.releaseFrozen(server);
  t.equal(await largest(adopted, client), 30_000, 'adopted');
  rig.close();
});

t.test('a batch ends once it holds 256 KiB', async (t) => {
  const rig = new Rig();
  const { address } = rig.listen(loopback);
  const pairs: { client: number; server: number }[] = [];
  for (let i = 0; i < 16; i++) pairs.push(await rig.pair(address));
  for (const { server } of pairs) rig.submit(Op.Pause, server);
  rig.flush();
  const sent = pattern(60_000);
  for (const { client } of pairs) rig.sendNow(client, sent);
  await until(() => pairs.every(({ client }) => rig.transport.pendingBytes(client) === 0), 'the kernel to take all');
  for (const { server } of pairs) rig.submit(Op.Resume, server);
  rig.flush();
  await until(() => pairs.every(({ server }) => rig.received(server).length === sent.length), 'all bytes');
  const sums = new Map<number, number>();
  for (const { batch, bytes } of rig.of(Event.Data)) sums.set(batch, (sums.get(batch) ?? 0) + bytes.length);
  t.ok([...sums.values()].every((sum) => sum < ENOUGH + SHARE));
  for (const { server } of pairs) t.ok(rig.received(server).equals(sent));
  rig.close();
});

t.test('each batch updates the clocks', async (t) => {
  const rig = new Rig();
  const from = Number(process.hrtime.bigint()) / 1e6;
  const { client, server } = await rig.pair(rig.listen(loopback).address);
  const first = rig.monotonic;
  rig.sendNow(client, 'x');
  await rig.next(Event.Data, server);
  t.ok(first >= from && rig.monotonic > first && rig.monotonic <= Number(process.hrtime.bigint()) / 1e6);
  t.ok(Math.abs(rig.clock[ClockWord.Realtime]! - Date.now()) < 60_000, 'the realtime clock too');
  rig.close();
});

for (const [name, isBusy] of [
  ['', false],
  [', nor from libuv while it always has something', true],
] as const) {
  t.test(`bytes left after the last round of a turn are delivered without another kernel event${name}`, async (t) => {
    const rig = new Rig();
    const { client, server } = await rig.pair(rig.listen(unix(`@baton-shim-left-${process.pid}`)).address);
    const { port1, port2 } = new MessageChannel();
    if (isBusy) {
      port1.on('message', () => port1.postMessage(''));
      port2.on('message', () => port2.postMessage(''));
      port1.postMessage('');
    }
    rig.now(Op.Pause, server);
    rig.now(Op.Watermark, client, 1 << 30, 0);
    const sent = pattern(6 << 20);
    rig.send(client, sent);
    rig.submit(Op.Resume, server);
    rig.flush();
    await until(() => rig.received(server).length === sent.length, 'all bytes');
    t.ok(rig.received(server).equals(sent));
    port1.close();
    rig.close();
  });
}

t.test('connections that a turn has no time for are served in a later one, without a kernel event', async (t) => {
  const rig = new Rig({ highWatermark: 1 << 30 });
  t.teardown(() => rig.close());
  const { address } = rig.listen(unix(`@baton-shim-late-${process.pid}`));
  const pairs = [];
  for (let i = 0; i < 6; i++) pairs.push(await rig.pair(address));
  const sent = pattern(150_000);
  for (const { client, server } of pairs) {
    rig.now(Op.Pause, server);
    rig.sendNow(client, sent);
    t.equal(rig.transport.pendingBytes(client), 0, 'the kernel has all of it');
  }
  // Longer than a turn.
  rig.onEvent = () => {
    const endMs = performance.now() + 10;
    while (performance.now() < endMs);
  };
  for (const { server } of pairs) rig.submit(Op.Resume, server);
  rig.flush();
  for (const { server } of pairs) await until(() => rig.received(server).length === sent.length, 'all bytes');
});

t.test('an idle transport does not keep the loop turning', async (t) => {
  const rig = new Rig();
  const { client, server } = await rig.pair(rig.listen(loopback).address);
  const sent = pattern(4 << 20);
  rig.sendNow(client, sent);
  await until(() => rig.received(server).length === sent.length, 'all bytes');
  const before = process.cpuUsage();
  const from = performance.now();
  await new Promise((resolve) => setTimeout(resolve, 300));
  const used = process.cpuUsage(before);
  const elapsed = performance.now() - from;
  t.ok((used.user + used.system) / 1000 < elapsed / 2, 'it slept most of the time');
  rig.close();
});
