// Connections within a thread: their outcome, what passes between the ends, and that no descriptor is left.

import { readdirSync } from 'node:fs';
import t, { type Test } from 'tap';
import { Memory } from '../../src/io/memory.js';
import { ConnectStep, loadShim } from '../../src/io/shim.js';
import { Clock } from '../../src/io/time/clock.js';
import { bufferLimits } from '../../src/io/transport/buffer-limits.js';
import type { ConnectionHandler } from '../../src/io/transport/connection-handler.js';
import { Transport } from '../../src/io/transport/transport.js';
import { waitFor } from '../e2e/harness/wait-for.js';

const LIMITS = bufferLimits(1 << 20);
const EINVAL = 22;
const ECONNRESET = 104;

/** One end, which records its events. */
class End implements ConnectionHandler {
  readonly events: string[] = [];
  readonly #memory: Memory;

  constructor(memory: Memory) {
    this.#memory = memory;
  }

  onConnected(): void {
    this.events.push('connected');
  }
  onData(offset: number, length: number): void {
    this.events.push(Buffer.from(this.#memory.bytes.subarray(offset, offset + length)).toString());
  }
  onEnd(): void {
    this.events.push('end');
  }
  onReset(errno: number, step: ConnectStep): void {
    this.events.push(`reset ${errno} ${step}`);
  }
  onBlocked(): void {}
  onDrained(): void {}
  onFault(): void {}
}

function open(t: Test) {
  const memory = new Memory();
  const caught: unknown[] = [];
  const transport = new Transport(loadShim(), memory, new Clock(), LIMITS, 0, (error) => caught.push(error));
  t.teardown(() => transport.destroy());
  const send = (id: number, text: string) => {
    const at = memory.scratch(text.length);
    memory.write(at, text);
    transport.send(id, at, text.length);
  };
  return { memory, transport, send, caught };
}

/** Returns both ends of a connection. */
async function connected(t: Test, bufferBytes?: number) {
  const opened = open(t);
  const { memory, transport } = opened;
  const [opener, accepted] = [new End(memory), new End(memory)];
  let acceptedId = -1;
  const id = transport.within.connect(LIMITS, bufferBytes, opener, (fd) => {
    acceptedId = transport.within.adopt(fd, LIMITS);
    transport.setHandler(acceptedId, accepted);
    return true;
  });
  t.same(opener.events, [], 'it is connected in a later turn');
  await waitFor(() => opener.events.length > 0);
  t.same(opener.events, ['connected']);
  return { ...opened, id, acceptedId, opener, accepted };
}

const openFiles = () => readdirSync('/proc/self/fd').length;

t.test('bytes and ends pass in both directions', async (t) => {
  const { accepted, acceptedId, id, opener, send, transport } = await connected(t, 64 * 1024);
  send(id, 'request');
  await waitFor(() => accepted.events.includes('request'));
  send(acceptedId, 'response');
  transport.shutdown(acceptedId);
  await waitFor(() => opener.events.includes('end'));
  t.same(opener.events, ['connected', 'response', 'end']);
  transport.close(id, 1000, 0);
  await waitFor(() => accepted.events.includes('end'));
  transport.close(acceptedId, 0, 0);
});

t.test('a reset of either end is a reset of the other, and no orderly end', async (t) => {
  for (const side of ['acceptedId', 'id'] as const) {
    const ends = await connected(t);
    ends.transport.reset(ends[side]);
    const other = side === 'id' ? ends.accepted : ends.opener;
    const reset = `reset ${ECONNRESET} ${ConnectStep.Later}`;
    await waitFor(() => other.events.includes(reset));
    t.notOk(other.events.includes('end'));
  }
});

for (const flushMs of [0, 100]) {
  for (const isNotified of [false, true]) {
    const how = isNotified ? ', of which its owner is notified,' : '';
    t.test(`bytes that a close${how} drops after ${flushMs} ms are a reset of the other end`, async (t) => {
      const { acceptedId, id, memory, opener, transport } = await connected(t, 64 * 1024);
      transport.pause(id);
      const length = 1 << 19;
      transport.send(acceptedId, memory.scratch(length), length);
      let gone = 0;
      transport.close(acceptedId, flushMs, 0, isNotified ? () => gone++ : undefined);
      await waitFor(() => opener.events.includes(`reset ${ECONNRESET} ${ConnectStep.Later}`));
      t.notOk(opener.events.includes('end'), 'no orderly end');
      await waitFor(() => gone === (isNotified ? 1 : 0));
    });
  }
}

t.test('a close that has sent all bytes in time is an orderly end', async (t) => {
  const { acceptedId, id, memory, opener, transport } = await connected(t, 64 * 1024);
  transport.pause(id);
  const length = 1 << 19;
  transport.send(acceptedId, memory.scratch(length), length);
  let gone = 0;
  transport.close(acceptedId, 5000, 0, () => gone++);
  transport.resume(id);
  await waitFor(() => opener.events.includes('end') && gone === 1);
  t.equal(opener.events.slice(1, -1).join('').length, length);
});

t.test('a failure of one end is a reset of both', async (t) => {
  const { accepted, acceptedId, id, memory, opener, transport } = await connected(t, 64 * 1024);
  transport.setLimits(acceptedId, { ...LIMITS, hardLimit: 4096 });
  transport.pause(id);
  const length = 1 << 19;
  transport.send(acceptedId, memory.scratch(length), length);
  await waitFor(() => opener.events.some((event) => event.startsWith('reset')));
  t.match(accepted.events, [/^reset/]);
  t.notOk(opener.events.includes('end'));
});

t.test('an end of a pair cannot move to another process', async (t) => {
  const { acceptedId, id, transport } = await connected(t);
  t.same([transport.freeze(id), transport.freeze(acceptedId)], [false, false]);
});

t.test('a connect that nobody accepts fails, and leaves no descriptor', async (t) => {
  const { memory, transport } = open(t);
  const before = openFiles();
  const opener = new End(memory);
  const id = transport.within.connect(LIMITS, undefined, opener, () => false);
  await waitFor(() => opener.events.length > 0);
  t.equal(opener.events[0], `reset ${EINVAL} ${ConnectStep.Connect}`);
  transport.close(id, 0, 0);
  await waitFor(() => openFiles() <= before);
});

t.test('an end that is closed before its turn gives the other one to nobody', async (t) => {
  const { memory, transport } = open(t);
  const before = openFiles();
  let isGiven = false;
  const opener = new End(memory);
  const id = transport.within.connect(LIMITS, undefined, opener, () => {
    isGiven = true;
    return false;
  });
  transport.close(id, 0, 0);
  await waitFor(() => openFiles() <= before);
  t.notOk(isGiven);
  t.same(opener.events, []);
});

t.test('an exception of the accepting side ends neither the thread nor the turn', async (t) => {
  const { caught, memory, transport } = open(t);
  const opener = new End(memory);
  transport.within.connect(LIMITS, undefined, opener, (fd) => {
    transport.within.closeGiven(fd);
    throw new Error('refused');
  });
  await waitFor(() => opener.events.includes('end'));
  t.match(caught, [{ message: 'refused' }]);
});

t.test('a transport that is destroyed closes the ends that nobody has yet', async () => {
  const memory = new Memory();
  const before = openFiles();
  const transport = new Transport(loadShim(), memory, new Clock(), LIMITS, 0, () => {});
  for (let i = 0; i < 10; i++) transport.within.connect(LIMITS, undefined, new End(memory), () => false);
  transport.destroy();
  await waitFor(() => openFiles() <= before);
});
