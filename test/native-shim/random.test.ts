// Whatever JavaScript submits and whenever: each connection's events keep their order, its bytes arrive as they were
// sent, and nothing is reported for an id that was given up.

import t from 'tap';
import { Event, ID_SLOT_MASK, Op } from '../../src/io/shim.js';
import { loopback, pattern, Rig, type Seen, unix, until } from './harness.js';

const STREAM = pattern(1 << 20, 99);
const GREETING = 4;

/** One end of a connection, and what is still allowed to happen to it. */
interface End {
  id: number;
  state: 'connecting' | 'open' | 'ended' | 'dead';
  sent: number;
  shut: boolean;
  received: number;
  /** Where in STREAM the peer's bytes begin; known to the accepting end after the greeting. */
  peerSeed: number;
  ownSeed: number;
  accepting: boolean;
  closedInBatch: number;
}

for (const seed of [1, 2, 3, 4]) {
  t.test(`random submissions, seed ${seed}`, { timeout: 60_000 }, async (t) => {
    const random = generator(seed);
    const rig = new Rig({
      unlogged: true,
      uncopied: true,
      receiveBytes: seed % 2 ? 16 * 1024 : 1 << 20,
      maxEvents: seed % 2 ? 16 : 256,
      maxSubmissions: 32,
      highWatermark: 20_000,
      hardLimit: 400_000,
    });
    const ends = new Map<number, End>();
    const gone = new Map<number, End>();
    const wrong: string[] = [];
    const listeners = [rig.listen(loopback), rig.listen(unix(`@baton-shim-random-${process.pid}-${seed}`))];
    const counted = new Map<Event, number>();

    const open = (id: number, accepting: boolean) => {
      const ownSeed = random(STREAM.length);
      ends.set(id, {
        id,
        state: accepting ? 'open' : 'connecting',
        sent: 0,
        shut: false,
        received: 0,
        peerSeed: -1,
        ownSeed,
        accepting,
        closedInBatch: -1,
      });
      // Each end begins with where in the stream its bytes come from.
      const greeting = Buffer.alloc(GREETING);
      greeting.writeUInt32LE(ownSeed);
      rig.send(id, greeting);
    };
    const drop = (end: End, op: Op) => {
      rig.submit(op, end.id, random(3) * 200, random(3) * 200);
      ends.delete(end.id);
      end.closedInBatch = rig.batches;
      gone.set(end.id, end);
    };
    const receive = (end: End, bytes: Buffer) => {
      let body = bytes;
      if (end.peerSeed < 0) {
        // The greeting is sent in one piece and is the first thing in the stream, so it arrives whole.
        end.peerSeed = bytes.readUInt32LE();
        body = bytes.subarray(GREETING);
      }
      const expected = slice(end.peerSeed + end.received, body.length);
      if (!body.equals(expected)) wrong.push(`bytes of ${end.id} at ${end.received}`);
      end.received += body.length;
    };
    const check = (event: Seen) => {
      counted.set(event.kind, (counted.get(event.kind) ?? 0) + 1);
      const end = ends.get(event.id);
      if (event.kind === Event.Accept) {
        if (end) wrong.push(`Accept of a living id ${event.id}`);
        return open(event.id, true);
      }
      if (!end) {
        const late = gone.get(event.id);
        // Given up within a batch, an id may still have events further on in that batch.
        if (late?.closedInBatch !== rig.batches) {
          wrong.push(`event ${event.kind} for ${late ? 'a closed' : 'an unknown'} id ${event.id}`);
        }
        return;
      }
      const allowed: Record<End['state'], Event[]> = {
        connecting: [Event.Connected, Event.Reset, Event.Blocked],
        open: [Event.Data, Event.End, Event.Reset, Event.Blocked, Event.Drained],
        ended: [Event.Reset, Event.Blocked, Event.Drained],
        dead: [],
      };
      if (!allowed[end.state].includes(event.kind)) wrong.push(`event ${event.kind} while ${end.state}`);
      if (event.kind === Event.Connected) end.state = 'open';
      if (event.kind === Event.Data) receive(end, event.bytes);
      if (event.kind === Event.End) end.state = 'ended';
      if (event.kind === Event.Reset) end.state = 'dead';
      if (end.state === 'dead' || (end.state === 'ended' && random(2))) drop(end, random(4) ? Op.Close : Op.Reset);
    };
    const act = () => {
      const all = [...ends.values()];
      const end = all[random(all.length)];
      const dice = random(100);
      if (!end || (dice < 12 && ends.size < 60)) {
        const { address } = listeners[random(2)]!;
        return open(rig.connect(address, undefined, 20_000, 400_000), false);
      }
      if (dice < 60) {
        if (end.shut) return;
        const length = [1, 100, 5000, 70_000][random(4)]!;
        const pieces = 1 + random(4);
        for (let i = 0; i < pieces; i++) {
          rig.send(end.id, slice(end.ownSeed + end.sent, length));
          end.sent += length;
        }
      } else if (dice < 72) rig.submit(Op.Pause, end.id);
      else if (dice < 86) rig.submit(Op.Resume, end.id);
      else if (dice < 89) {
        rig.submit(Op.Shutdown, end.id);
        end.shut = true;
      } else if (dice < 92) drop(end, Op.Close);
      else if (dice < 94) drop(end, Op.Reset);
      else if (dice < 96) rig.submit(Op.Watermark, end.id, random(50_000), 400_000);
      else if (dice < 98) {
        const stale = [...gone.keys()][random(gone.size)];
        if (stale !== undefined) rig.submit([Op.Reset, Op.Close, Op.Pause, Op.Shutdown][random(4)]!, stale);
      } else rig.flush();
    };

    rig.onEvent = (event) => {
      check(event);
      if (random(3) === 0) act();
    };
    for (let step = 0; step < 6000 && wrong.length === 0; step++) {
      act();
      if (step % 8 === 0) {
        rig.flush();
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
    t.same(wrong, []);
    for (const kind of [Event.Accept, Event.Data, Event.End, Event.Reset, Event.Connected, Event.Blocked]) {
      t.ok((counted.get(kind) ?? 0) > 0, `event ${kind} happened`);
    }
    rig.onEvent = check;
    for (const end of [...ends.values()]) drop(end, Op.Reset);
    rig.flush();
    await until(() => {
      for (const end of [...ends.values()]) drop(end, Op.Reset);
      rig.flush();
      const { connections, closing } = rig.transport.counts();
      return connections === 0 && closing === 0;
    }, 'everything to be closed');
    t.same(wrong, []);
    t.ok(gone.size > 100 && new Set([...gone.keys()].map((id) => id & ID_SLOT_MASK)).size > 100);
    rig.close();
  });
}

/** A part of the endlessly repeated STREAM. */
function slice(from: number, length: number): Buffer {
  const at = from % STREAM.length;
  if (at + length <= STREAM.length) return STREAM.subarray(at, at + length);
  return Buffer.concat([STREAM.subarray(at), STREAM.subarray(0, at + length - STREAM.length)]);
}

/** random(n) is an integer from 0 to n - 1. */
function generator(seed: number): (below: number) => number {
  let state = seed * 2654435761;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}
