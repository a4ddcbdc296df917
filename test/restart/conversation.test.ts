// Both ends of a hot restart as state machines, without sockets and processes: the messages, and how every wait ends.

import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import t from 'tap';
import { ChildEnd, type ChildHost } from '../../src/restart/child-end.js';
import { type Joined, joinParent, type ParentAccess } from '../../src/restart/join-parent.js';
import type { Link, LinkEvents } from '../../src/restart/link.js';
import {
  decodeHello,
  decodeToChild,
  decodeToParent,
  encodeToChild,
  encodeToParent,
  type StatsPiece,
  type ToChild,
  type ToParent,
} from '../../src/restart/messages.js';
import { type Offer, type ParentDeadlines, ParentEnd, type ParentHost } from '../../src/restart/parent-end.js';
import { distrust } from '../../src/restart/trust.js';
import { HOT_RESTART_VERSION } from '../../src/restart/version.js';
import { waitFor } from '../e2e/harness/wait-for.js';

const PIECE: StatsPiece = { sections: [], memoryAllocated: 1, connections: 2, isLast: true };

/** A link whose other end is the test. Messages are encoded and decoded. */
class TestLink<Out> implements Link<Out> {
  readonly sent: { readonly message: Out; readonly fds: readonly number[] }[] = [];
  isClosed = false;
  /** Why the link has failed. */
  givenUp: string | undefined;

  constructor(readonly copy: (message: Out) => Out) {}

  send(message: Out, fds: readonly number[] = []): void {
    if (!this.isClosed) this.sent.push({ message: this.copy(message), fds });
  }
  async drained(): Promise<void> {}
  fail(why: string): void {
    this.givenUp ??= why;
  }
  close(): void {
    this.isClosed = true;
  }
}

const TICKET_KEYS = { keys: Buffer.alloc(160, 7), madeMs: 3 };

t.test('a parent welcomes one child at a time, and refuses others with a reason', async (t) => {
  const { end, host } = parent();
  const cases: [change: Partial<ParentHost>, version: string, epoch: number, reason: RegExp][] = [
    [{}, '0.1', 4, /^Hot restart version mismatch! It has version 0\.1, its parent /],
    [{}, HOT_RESTART_VERSION, 7, /^its parent has epoch 3: --restart-epoch 4 takes over from it$/],
    [{ stage: 'ending' }, HOT_RESTART_VERSION, 4, /^its parent is shutting down$/],
    [{ stage: 'initializing' }, HOT_RESTART_VERSION, 4, /^previous baton process is still initializing$/],
  ];
  for (const [change, version, epoch, reason] of cases) {
    const before = host.stage;
    Object.assign(host, change);
    const { link } = greet(end, version, epoch);
    t.match(link.sent, [{ message: { kind: 'refusal', reason } }]);
    t.ok(link.isClosed);
    host.stage = before;
  }
  const first = greet(end);
  t.match(first.link.sent, [
    {
      message: {
        kind: 'welcome',
        welcome: { firstStartedMs: 17.5, generation: 4, sockets: [], isLast: true, ticketKeys: TICKET_KEYS },
      },
    },
  ]);
  const second = greet(end);
  first.events.message({ kind: 'alive' }, []);
  t.match(second.link.sent, [{ message: { reason: 'previous baton process is still initializing' } }]);
  second.events.ended('it has ended', true);
  second.events.message(live([1], 1), []);
  t.notOk(first.link.isClosed, 'the end of a refused process does not affect the child');
  first.events.ended('it has ended', true);
  t.match(greet(end).link.sent, [{ message: { kind: 'welcome' } }], 'the next one succeeds');
  t.same(host.log, [], 'the parent is unaffected');
  await end.finish();
});

t.test('sockets are sent in messages of at most 64 descriptors, and arrive complete', async (t) => {
  const { end, host } = parent();
  const offers = [100, 1, 64, 0, 27, ...new Array<number>(40).fill(1)].map((count, id) => ({
    ...{ id, isAdmin: id === 1, name: `l${id}`, configured: 'c', real: 'r', traits: 't', isReusePort: true },
    fds: Array.from({ length: count }, (_, fd) => 1000 * id + fd),
  }));
  host.offers = offers;
  const { link } = greet(end);
  t.ok(link.sent.every(({ fds }) => fds.length <= 64));
  const groups = link.sent.map(({ message }) => (message.kind === 'welcome' ? message.welcome.sockets : []));
  t.ok(groups.every((sockets) => sockets.length <= 32 && sockets.every(({ count }) => count > 0)));
  const joined = await join((door) => {
    for (const { message, fds } of link.sent) door.events.message(message, fds);
    door.prove();
  });
  t.same(
    joined!.sockets,
    offers.filter(({ fds }) => fds.length > 0),
  );
  await end.finish();
});

t.test('an initializing child is offered new sockets, in as many messages as needed', async (t) => {
  const { end, host } = parent();
  const offer = (id: number, fds: number[]): Offer => {
    return { id, isAdmin: false, name: `l${id}`, configured: 'c', real: 'r', traits: 't', isReusePort: false, fds };
  };
  end.offerNewSockets();
  const { link, events } = greet(end);
  end.offerNewSockets();
  t.equal(link.sent.length, 1, 'no message without new sockets');
  const taken: number[] = [];
  const closed: number[] = [];
  const more = (...offers: Offer[]) => {
    host.offers = offers;
    const before = link.sent.length;
    end.offerNewSockets();
    return link.sent.slice(before);
  };
  const large = offer(
    1,
    Array.from({ length: 100 }, (_, index) => 1000 + index),
  );
  const joined = await join((door) => {
    for (const { message, fds } of link.sent) door.events.message(message, fds);
    door.prove();
    // Messages before attach() are not lost.
    for (const { message, fds } of more(offer(0, [7]))) door.events.message(message, fds);
  });
  const child = new ChildEnd(joined!, {
    ...NOBODY,
    closeDescriptor: (fd) => void closed.push(fd),
    takeSockets: (sockets) => taken.push(...sockets.map(({ fds, id }) => id * 1000 + fds.length)),
  });
  t.same(taken, [1]);
  const parts = more(large);
  t.equal(parts.length, 2);
  for (const { message, fds } of parts) child.message(message, fds);
  t.same(taken, [1, 1100]);
  child.takeOver([], 60);
  for (const { message, fds } of more(offer(2, [8]))) child.message(message, fds);
  t.same(taken, [1, 1100, 2001], 'a live child may still take them');
  events.message(live([], 60), []);
  t.same(more(offer(3, [9])), [], 'a child that has taken over gets no offers');
  t.same(closed, []);
  child.message(parts[0]!.message, parts[0]!.fds);
  child.close();
  t.equal(closed.length, 64, 'an incomplete offer is closed');
  await end.finish();
});

t.test('a child that is not live in time is refused, and its later messages are ignored', async (t) => {
  const { end, host } = parent();
  const { link, events } = greet(end);
  await waitFor(() => link.isClosed);
  events.message(live([1], 1), []);
  events.message({ kind: 'terminate' }, []);
  t.same(host.log, []);
  t.match(greet(end).link.sent, [{ message: { kind: 'welcome' } }]);
  await end.finish();
});

t.test("a silent child is refused; one that sends 'alive' is not", async (t) => {
  const { end, host } = parent({ liveMs: 60_000, silentMs: 200 });
  const { link, events } = greet(end);
  const alive = setInterval(() => events.message({ kind: 'alive' }, []), 10);
  await pause(600);
  t.notOk(link.isClosed, 'for any duration');
  clearInterval(alive);
  await waitFor(() => link.isClosed);
  const reason = 'its parent has abandoned it: it sent nothing for 0.2 s';
  t.same(link.sent.at(-1)?.message, { kind: 'refusal', reason });
  t.match(greet(end).link.sent, [{ message: { kind: 'welcome' } }]);
  t.same(host.log, []);
  await end.finish();
});

t.test('a second process waits to see whether the first is alive, and replaces it if not', async (t) => {
  const { end } = parent({ liveMs: 60_000, contestedSilentMs: 100 });
  const first = greet(end);
  const gone = greet(end);
  gone.events.ended('it has ended', true);
  const waiting = greet(end);
  t.same(waiting.link.sent, [], 'the place of a waiting process that has ended is free');
  const busy = 'previous baton process is still initializing';
  t.match(greet(end).link.sent, [{ message: { reason: busy } }], 'only one process waits at a time');
  first.events.message({ kind: 'alive' }, []);
  t.match(waiting.link.sent, [{ message: { reason: busy } }]);
  const second = greet(end);
  await waitFor(() => first.link.isClosed);
  t.match(first.link.sent.at(-1)?.message, { kind: 'refusal', reason: /another process wants to take over$/ });
  t.match(second.link.sent, [{ message: { kind: 'welcome' } }]);
  const third = greet(end);
  second.events.ended('it has ended', true);
  t.match(third.link.sent, [{ message: { kind: 'welcome' } }], 'at once, if that process ends');
  const last = greet(end);
  third.events.message(live([], 60), []);
  t.match(last.link.sent, [{ message: { reason: busy } }], 'that one serves');
  await end.finish();
});

t.test('a refused process ends, whichever process started it', async (t) => {
  const link = new TestLink<ToParent>((message) => decodeToParent(encodeToParent(message)));
  const log: string[] = [];
  const host = { ...NOBODY, parentLost: (why: string, isRefusal: boolean) => log.push(`${why} ${isRefusal}`) };
  const deadlines = { aliveMs: 1, statsMs: 10, terminateMs: 10, closeMs: 10, standbyMs: 0 };
  const child = new ChildEnd(joinedWith(link), host as ChildHost, deadlines);
  await waitFor(() => link.sent.filter(({ message }) => message.kind === 'alive').length > 2, {
    what: 'signs of life',
  });
  child.message({ kind: 'refusal', reason: 'too\nlate' }, []);
  t.same(log, ['too\\nlate true']);
  t.ok(link.isClosed);
});

t.test('the link to a child that repeats any message too often fails', async (t) => {
  const repeats: Record<string, ToParent> = {
    alive: { kind: 'alive' },
    live: live([], 60),
    further: { kind: 'further', sockets: [{ id: 1, count: 1 }] },
    release: { kind: 'release', ids: [1] },
    terminate: { kind: 'terminate' },
    'stats-request': { kind: 'stats-request' },
  };
  for (const [kind, message] of Object.entries(repeats)) {
    const { end, host } = parent({ liveMs: 60_000 });
    host.exportStats = async function* () {
      await new Promise(() => {});
      yield PIECE;
    };
    host.offers = [offer(1)];
    const { link, events } = greet(end);
    if (kind !== 'alive' && kind !== 'further') events.message(live([], 60), []);
    let count = 0;
    while (link.givenUp === undefined && count++ < 20_000) events.message(message, kind === 'further' ? [8] : []);
    t.match(link.givenUp, new RegExp(`more than [0-9]+ messages of kind '${kind}'`));
    t.ok(host.log.filter((line) => !line.startsWith('closed')).length < 2500, 'its work is limited');
    await end.finish();
  }
});

t.test('the link to a parent that repeats any message too often fails', (t) => {
  const repeats: Record<string, ToChild> = {
    refusal: { kind: 'refusal', reason: '' },
    'hand-over': { kind: 'hand-over' },
    empty: { kind: 'empty' },
    replaced: { kind: 'replaced' },
    released: { kind: 'released' },
    stats: { kind: 'stats', stats: PIECE },
    'pieces of stats': { kind: 'stats', stats: { ...PIECE, isLast: false } },
  };
  for (const [what, message] of Object.entries(repeats)) {
    const link = new TestLink<ToParent>((sent) => decodeToParent(encodeToParent(sent)));
    const child = new ChildEnd(joinedWith(link), { ...NOBODY, connectionWorkers: 1 });
    void child.takeOver([], 60);
    let count = 0;
    while (link.givenUp === undefined && count++ < 20_000) child.message(message, []);
    t.match(link.givenUp, /more/, what);
    child.ended(link.givenUp ?? '');
  }
  t.end();
});

t.test('premature messages of a child have no effect; those of a live child are executed', async (t) => {
  const { end, host } = parent();
  const { link, events } = greet(end);
  events.message({ kind: 'terminate' }, []);
  events.message({ kind: 'stats-request' }, []);
  t.same(host.log, []);
  events.message(live([1, 2], 60), []);
  events.message(live([], 60), []);
  t.same(host.log, ['replaced 1,2'], 'once');
  events.message({ kind: 'stats-request' }, []);
  await waitFor(() => link.sent.some(({ message }) => message.kind === 'stats'));
  events.message({ kind: 'terminate' }, []);
  t.same(host.log, ['replaced 1,2', 'end']);
  await end.finish();
  t.equal(link.sent.filter(({ message }) => message.kind === 'stats').length, 2, 'the last stats come at the end');
  t.ok(link.isClosed);
});

t.test('a failed export affects neither the parent nor later stats', async (t) => {
  const { end, host } = parent();
  let asked = 0;
  let running = 0;
  host.exportStats = async function* () {
    t.equal(++running, 1, 'one at a time');
    try {
      await nextTurn();
      if (++asked === 1) throw new Error('on purpose');
      yield PIECE;
    } finally {
      running--;
    }
  };
  const { link, events } = greet(end);
  events.message(live([], 60), []);
  await waitFor(() => {
    events.message({ kind: 'stats-request' }, []);
    return link.sent.some(({ message }) => message.kind === 'stats');
  });
  events.message({ kind: 'terminate' }, []);
  await end.finish();
  t.equal(link.sent.at(-1)?.message.kind, 'stats');
  t.ok(link.isClosed);
});

t.test('a parent that is not terminated in time ends by itself', async (t) => {
  for (const what of ['a child that is silent', 'a child that breaks the link']) {
    const { end, host } = parent();
    const { link, events } = greet(end);
    events.message(live([], 0), []);
    if (what === 'a child that breaks the link') events.ended('it took no message', false);
    await waitFor(() => host.log.includes('end'));
    t.notOk(link.isClosed, `${what} gets the last stats`);
    await end.finish();
  }
});

t.test('a parent also ends by itself when another child was lost before it was live', async (t) => {
  const { end, host } = parent();
  const { events } = greet(end);
  events.message(live([], 60), []);
  events.ended('it sent an invalid message', false);
  const further = greet(end);
  t.match(further.link.sent, [{ message: { kind: 'welcome' } }]);
  further.events.ended('it has ended', true);
  await waitFor(() => host.log.includes('end'));
  t.match(greet(end).link.sent, [{ message: { kind: 'welcome' } }], 'until then another process may take over');
  await end.finish();
});

t.test('a parent whose child is dead serves again, and the next child takes over', async (t) => {
  const { end, host } = parent();
  for (const round of [1, 2]) {
    const { link, events } = greet(end);
    events.message(live([1], 60), []);
    t.not(link.sent.at(-1)?.message.kind, 'replaced');
    await waitFor(() => link.sent.at(-1)?.message.kind === 'replaced', { what: 'the answer to it' });
    t.same(link.sent.at(-1)?.message, { kind: 'replaced' }, 'sent once nothing is accepted any more');
    events.ended('it has ended', true);
    t.same(host.log.splice(0), ['replaced 1', 'takes back'], `round ${round}`);
    await nextTurn();
  }
  const { events } = greet(end);
  events.message(live([], 60), []);
  events.message({ kind: 'terminate' }, []);
  events.ended('it has ended', true);
  t.same(host.log, ['replaced ', 'end'], 'a terminated parent ends');
  await end.finish();
});

t.test('a child that arrives while sockets are being bound again waits for them', async (t) => {
  const { end, host } = parent();
  let isBack = () => {};
  host.reclaim = () => new Promise<void>((resolve) => (isBack = resolve));
  const dead = greet(end);
  dead.events.message(live([], 60), []);
  dead.events.ended('it has ended', true);
  const next = greet(end);
  t.same(next.link.sent, [], 'unbound sockets cannot be offered');
  t.match(greet(end).link.sent, [{ message: { reason: 'previous baton process is still initializing' } }], 'one waits');
  host.offers = [offer(1)];
  isBack();
  await waitFor(() => next.link.sent.length > 0, { what: 'an answer' });
  t.match(next.link.sent, [{ message: { kind: 'welcome', welcome: { sockets: [{ id: 1 }] } } }]);
  await end.finish();
});

t.test('a parent that dies after its welcome is trusted when its proof is read after its end', async (t) => {
  const joined = await join((door) => {
    door.events.message(
      { kind: 'welcome', welcome: { firstStartedMs: 0, generation: 1, sockets: [], isLast: true } },
      [],
    );
    door.events.ended('it has ended', true);
    setImmediate(() => door.prove());
  });
  t.ok(joined);
});

t.test('the parent serves again when a live child with an unusable link has ended', async (t) => {
  const broken = 'it sent an invalid message';
  const { end, host } = parent();
  host.parentShutdownTimeS = 600;
  const first = greet(end);
  first.events.message(live([], 60), []);
  first.events.ended(broken, false);
  t.same(host.log, ['replaced '], 'the child may still accept');
  first.events.gone!();
  t.same(host.log.splice(0), ['replaced ', 'takes back']);
  await nextTurn();

  const second = greet(end);
  second.events.message(live([], 60), []);
  second.events.ended(broken, false);
  const late = greet(end);
  second.events.gone!();
  t.same(host.log, ['replaced '], 'the next one may still take over');
  late.events.ended('it has ended', true);
  t.same(host.log.splice(0), ['replaced ', 'takes back'], 'otherwise this one serves');
  await nextTurn();

  const third = greet(end);
  third.events.message(live([], 60), []);
  third.events.ended(broken, false);
  const fourth = greet(end);
  fourth.events.message(live([], 60), []);
  t.ok(third.link.isClosed);
  third.events.gone!();
  t.same(host.log, ['replaced ', 'replaced ']);
  await end.finish();
});

t.test('stats are exported one request at a time, and wait until the child has read them', async (t) => {
  const { end, host } = parent();
  const { events, link } = greet(end);
  let exports = 0;
  host.exportStats = async function* () {
    exports++;
    for (let piece = 0; piece < 3; piece++) yield { ...PIECE, isLast: piece === 2 };
  };
  let take = () => {};
  link.drained = () => new Promise<void>((resolve) => (take = resolve));
  const stats = () => link.sent.filter(({ message }) => message.kind === 'stats').length;
  events.message(live([], 60), []);
  for (let count = 0; count < 1000; count++) events.message({ kind: 'stats-request' }, []);
  for (let piece = 1; piece <= 3; piece++) {
    await waitFor(() => stats() === piece);
    take();
  }
  await waitFor(() => {
    events.message({ kind: 'stats-request' }, []);
    return exports === 2;
  });
  t.equal(stats(), 4, 'a request after the answer is a new one');
  link.drained = async () => {};
  take();
  await end.finish();
});

t.test('a child adds a limited number of sockets to a listener', async (t) => {
  const { end, host } = parent();
  host.offers = [offer(1), offer(2)];
  const { events } = greet(end);
  const fds = Array.from({ length: 64 }, () => 7);
  for (let count = 0; count < 20; count++) events.message({ kind: 'further', sockets: [{ id: 1, count: 64 }] }, fds);
  events.message({ kind: 'further', sockets: [{ id: 2, count: 1 }] }, [8]);
  const added = host.log.filter((line) => line.startsWith('sockets 1: ')).map((line) => line.split(',').length);
  t.equal(
    added.reduce((sum, count) => sum + count, 0),
    1024,
  );
  t.equal(host.log.filter((line) => line === 'closed 7').length, 20 * 64 - 1024);
  t.equal(host.log.at(-1), 'sockets 2: 8');
  await end.finish();
});

t.test('sockets that a child has bound are kept for it, and closed when it releases them', async (t) => {
  const { end, host } = parent();
  host.offers = [offer(0), offer(2)];
  const { link, events } = greet(end);
  const sockets = [
    { id: 2, count: 1 },
    { id: 0, count: 2 },
    { id: 9, count: 5 },
  ];
  events.message({ kind: 'further', sockets }, [11, 12, 13]);
  events.message({ kind: 'further', sockets: [] }, [14]);
  events.message({ kind: 'release', ids: [1] }, []);
  events.message(live([2, 0], 60), [15]);
  t.same(host.log, ['sockets 2: 11', 'sockets 0: 12,13', 'closed 14', 'closed 15', 'replaced 2,0']);
  events.message({ kind: 'release', ids: [0, 2] }, []);
  await waitFor(() => link.sent.at(-1)?.message.kind === 'released');
  t.equal(host.log.at(-1), 'released 0,2');
  const other = greet(end);
  other.events.message({ kind: 'further', sockets }, [16]);
  t.equal(host.log.at(-1), 'closed 16', 'those of a refused process are not kept');
  await end.finish();
});

t.test('a child shares its sockets, waits for its parent to stop, and for its copies to be closed', async (t) => {
  const link = new TestLink<ToParent>((message) => decodeToParent(encodeToParent(message)));
  const deadlines = { aliveMs: 60_000, statsMs: 10_000, terminateMs: 10_000, closeMs: 10_000, standbyMs: 0 };
  const child = new ChildEnd(joinedWith(link), NOBODY, deadlines);
  const fds = Array.from({ length: 71 }, (_, index) => 100 + index);
  await child.share(
    [
      { id: 1, count: 1 },
      { id: 5, count: 70 },
    ],
    fds,
  );
  t.ok(link.sent.every(({ fds }) => fds.length <= 64));
  t.same(
    link.sent.flatMap(({ message }) => (message.kind === 'further' ? message.sockets : [])),
    [
      { id: 1, count: 1 },
      { id: 5, count: 64 },
      { id: 5, count: 6 },
    ],
  );
  t.same(
    link.sent.flatMap(({ fds }) => fds),
    fds,
  );
  await child.release([1]);
  const settled: string[] = [];
  const follow = (name: string, what: Promise<void>) => void what.then(() => settled.push(name));
  follow('live', child.takeOver([1], 60));
  follow('first', child.release([1]));
  follow('second', child.release([5]));
  await nextTurn();
  t.same(settled, []);
  child.message({ kind: 'replaced' }, []);
  child.message({ kind: 'released' }, []);
  await waitFor(() => settled.length === 2);
  t.same(settled, ['live', 'first']);
  t.same(
    link.sent.slice(3).map(({ message }) => message.kind),
    ['live', 'release', 'release'],
    'before it is live it has nothing to give up',
  );
  child.ended('it has ended');
  await waitFor(() => settled.length === 3, { what: 'the end of what a dead parent does not answer' });
  const late = new ChildEnd(joinedWith(link), NOBODY, { ...deadlines, closeMs: 1 });
  await late.takeOver([], 60);
  await late.release([1]);
  late.close();
});

t.test('a child trusts only a parent that proves its uid', async (t) => {
  const welcome = { firstStartedMs: 1, generation: 1, sockets: [], isLast: true };
  await t.rejects(
    join((door) => {
      door.events.message({ kind: 'welcome', welcome }, []);
      door.prove('somebody else');
    }),
    { message: 'the parent process has not answered in 0.02 s (somebody else)' },
  );
  const rules = { uid: 1000, overflowUid: 65534, hasPrivatePath: false };
  const from = (uid: number) => ({ pid: 5, uid, gid: 5 });
  t.equal(distrust(from(1000), rules), undefined);
  t.equal(distrust(from(0), rules), undefined);
  t.match(distrust(from(1001), rules), 'process 5 runs as uid 1001, this one as 1000');
  t.match(distrust(from(65534), rules), 'give all processes of the restart a --socket-path in the file system');
  t.equal(distrust(from(65534), { ...rules, hasPrivatePath: true }), undefined);
  t.ok(distrust(undefined, rules));
});

t.test('joining fails after a refusal, silence, death or a full socket', async (t) => {
  const welcome = { firstStartedMs: 1, generation: 1, sockets: [], isLast: false };
  const cases: [act: (door: Door) => void, message: RegExp, isFatalWithSkip: boolean][] = [
    [(door) => door.refuse('because'), /^because$/, true],
    [(door) => door.refuse(`one\nline\u001b[2J${'x'.repeat(60_000)}`), /^one\\nline\\(x1b|u001b)\[2Jx{400,500}$/, true],
    [() => {}, /has not answered in 0\.02 s$/, false],
    [(door) => door.events.ended('it has ended', true), /^the parent process was lost: it has ended/, false],
    [
      (door) => {
        door.prove();
        door.events.message({ kind: 'welcome', welcome }, [7]);
        door.events.ended('it has ended', true);
      },
      /^the parent process was lost/,
      true,
    ],
    [(door) => (door.isFull = true), /cannot be reached: its socket is full/, false],
  ];
  for (const [act, message, isFatalWithSkip] of cases) {
    await t.rejects(join(act), { message });
    if (isFatalWithSkip) await t.rejects(join(act, true), { message });
    else t.equal(await join(act, true), undefined, `${message}: starts normally if it may`);
  }
});

t.test('under the wrapper a dead parent is no reason to wait or to end', async (t) => {
  const welcome = { firstStartedMs: 1, generation: 1, sockets: [], isLast: false };
  const gone = (door: Door) => {
    door.prove();
    door.events.message({ kind: 'welcome', welcome }, [7]);
    door.events.ended('it has ended', true);
  };
  let tries = 0;
  const silent = (door: Door) => {
    tries++;
    door.isAbsent = true;
  };
  t.equal(await join(silent, false, true), undefined);
  t.equal(tries, 1, 'the wrapper started this process while the parent lived');
  tries = 0;
  const removed = (door: Door) => {
    door.absence = 'ENOENT';
    door.isAbsent = ++tries < 3;
    if (!door.isAbsent) door.refuse('because');
  };
  await t.rejects(join(removed, false, true), { message: 'because' }, 'a parent makes a removed file again');
  tries = 0;
  const missing = (door: Door) => {
    door.absence = 'ENOENT';
    silent(door);
  };
  t.equal(await join(missing, false, true), undefined);
  t.equal(tries, 4, 'a parent that does not is dead');
  t.equal(await join(gone, false, true), undefined);
  await t.rejects(
    join(() => {}, false, true),
    { message: /has not answered/ },
    'one that hangs may serve again',
  );
  await t.rejects(
    join((door) => door.refuse('because'), false, true),
    { message: 'because' },
  );
});

t.test('a child imports stats, is not blocked by a slow parent, and terminates it in time', async (t) => {
  const link = new TestLink<ToParent>((message) => decodeToParent(encodeToParent(message)));
  const log: string[] = [];
  const closed: number[] = [];
  const host: ChildHost = {
    parentLost: (why) => log.push(`lost ${why}`),
    importStats: ({ connections }) => log.push(`stats ${connections}`),
    parentEnded: () => log.push('ended'),
    connectionWorkers: 0,
    takeConnections() {},
    closeDescriptor: (fd) => void closed.push(fd),
    takeSockets() {},
  };
  const child = new ChildEnd(joinedWith(link), host, {
    aliveMs: 60_000,
    statsMs: 10,
    terminateMs: 10_000,
    closeMs: 10,
    standbyMs: 0,
  });
  child.terminate();
  t.same(link.sent, [], 'before it is live it does not end its parent');
  child.takeOver([3], 0.05);
  const refreshed = child.refreshStats();
  child.message({ kind: 'stats', stats: PIECE }, []);
  await refreshed;
  t.same(log, ['stats 2']);
  await child.refreshStats();
  await child.refreshStats();
  t.same(
    link.sent.map(({ message }) => message.kind).filter((kind) => kind !== 'terminate'),
    ['live', 'stats-request', 'stats-request'],
    'nobody is asked again who owes an answer',
  );
  child.message({ kind: 'stats', stats: PIECE }, []);
  await waitFor(() => link.sent.at(-1)!.message.kind === 'terminate');
  child.ended('it has ended');
  child.ended('it has ended');
  t.same(log, ['stats 2', 'stats 2', 'ended']);
  child.message({ kind: 'empty' }, [7]);
  child.message({ kind: 'hand-over' }, [8]);
  t.same(closed, [7, 8], 'unexpected descriptors are closed');

  const left = new ChildEnd(joinedWith(link), host, {
    aliveMs: 60_000,
    statsMs: 60_000,
    terminateMs: 60_000,
    closeMs: 10,
    standbyMs: 0,
  });
  left.takeOver([], 60);
  const refresh = left.refreshStats();
  left.ended('it has ended');
  await refresh;
  const lost = new ChildEnd(joinedWith(link), host);
  lost.ended('gone');
  t.equal(log.at(-1), 'lost gone');
  const deaf = new ChildEnd(joinedWith(link), host, {
    aliveMs: 60_000,
    statsMs: 10,
    terminateMs: 10,
    closeMs: 10,
    standbyMs: 0,
  });
  deaf.takeOver([], 60);
  deaf.terminate();
  await waitFor(() => link.isClosed);
  t.equal(log.at(-1), 'ended', 'a parent that does not end is abandoned');
});

t.test('a parent without connections stays until its child has served for a while', async (t) => {
  const deadlines = { aliveMs: 60_000, statsMs: 10, terminateMs: 10_000, closeMs: 10 };
  for (const [standbyMs, shutdownS] of [
    [60_000, 0.05],
    [50, 60],
  ] as const) {
    const link = new TestLink<ToParent>((message) => decodeToParent(encodeToParent(message)));
    const child = new ChildEnd(joinedWith(link), NOBODY, { ...deadlines, standbyMs });
    void child.takeOver([], shutdownS);
    child.message({ kind: 'empty' }, []);
    t.not(link.sent.at(-1)!.message.kind, 'terminate');
    await waitFor(() => link.sent.at(-1)!.message.kind === 'terminate');
    child.ended('it has ended');
  }
});

t.test('a parent without free descriptors hands its connections over as soon as it has some', async (t) => {
  const { host, end } = parent();
  let tries = 0;
  host.handOverConnections = () => {
    if (++tries < 3) throw new Error('socketpair: too many open files');
    return [7];
  };
  const { link, events } = greet(end);
  events.message({ kind: 'live', taken: [], parentShutdownTimeS: 60, connectionWorkers: 1 }, []);
  await waitFor(() => link.sent.some(({ message }) => message.kind === 'hand-over'));
  t.same(link.sent.at(-1)?.fds, [7]);
  t.equal(tries, 3);
  host.handOverConnections = () => {
    throw new Error('socketpair: too many open files');
  };
  await end.finish();
});

t.test('invalid messages of any form are refused', async (t) => {
  for (let seed = 0; seed < 300; seed++) {
    const bytes = Uint8Array.from({ length: seed % 40 }, (_, i) => (seed * 131 + i * i * 17 + 7) & 0xff);
    for (const decode of [decodeHello, decodeToChild, decodeToParent]) {
      try {
        decode(bytes);
      } catch (error) {
        t.match(error, { code: 'ERR_GARBAGE' });
      }
    }
  }
  const section = { prefix: '', counters: ['a'], deltas: [], flushed: [], gauges: [], values: [] };
  t.throws(() => decodeToChild(encodeToChild({ kind: 'stats', stats: { ...PIECE, sections: [section] } })));
  const negative = { ...section, deltas: [-1], flushed: [0] };
  t.throws(() => decodeToChild(encodeToChild({ kind: 'stats', stats: { ...PIECE, sections: [negative] } })));
  const named = { ...section, flushed: [0], gauges: ['b'], values: [1] };
  for (const odd of [-1, Number.NaN, Number.POSITIVE_INFINITY, 1e308]) {
    const pieces = [
      { ...PIECE, sections: [{ ...named, deltas: [odd] }] },
      { ...PIECE, sections: [{ ...named, deltas: [1], values: [odd] }] },
      { ...PIECE, memoryAllocated: odd },
      { ...PIECE, connections: odd },
    ];
    for (const stats of pieces) {
      t.throws(() => decodeToChild(encodeToChild({ kind: 'stats', stats })), { code: 'ERR_GARBAGE' }, `${odd}`);
    }
    const welcome = { firstStartedMs: odd, generation: 1, sockets: [], isLast: true };
    t.throws(() => decodeToChild(encodeToChild({ kind: 'welcome', welcome })), { code: 'ERR_GARBAGE' }, `${odd}`);
  }
  for (const [bytes, madeMs] of [
    [0, 0],
    [79, 0],
    [240, 0],
    [80, -1],
  ] as const) {
    const ticketKeys = { keys: Buffer.alloc(bytes), madeMs };
    const welcome = { firstStartedMs: 0, generation: 1, sockets: [], isLast: true, ticketKeys };
    t.throws(() => decodeToChild(encodeToChild({ kind: 'welcome', welcome })), { code: 'ERR_GARBAGE' }, `${bytes}`);
  }
});

const NOBODY: ChildHost = {
  parentLost() {},
  importStats() {},
  parentEnded() {},
  connectionWorkers: 0,
  takeConnections() {},
  closeDescriptor() {},
  takeSockets() {},
};

function parent(deadlines: Partial<ParentDeadlines> = {}) {
  const log: string[] = [];
  const host = {
    epoch: 3,
    stage: 'live' as ParentHost['stage'],
    firstStartedMs: 17.5,
    generation: 4,
    parentShutdownTimeS: 0,
    offers: [] as Offer[],
    log,
    ticketKeys: () => TICKET_KEYS,
    offer: () => host.offers,
    offerNewSockets: () => host.offers,
    addSockets: (id: number, fds: readonly number[]) => void log.push(`sockets ${id}: ${fds.join()}`),
    childLost() {},
    release: async (ids: ReadonlySet<number>) => void log.push(`released ${[...ids].join()}`),
    reclaim: async (): Promise<void> => void log.push('takes back'),
    replaced: async (taken: ReadonlySet<number>) => void log.push(`replaced ${[...taken].join()}`),
    async *exportStats() {
      yield PIECE;
    },
    end: () => void log.push('end'),
    handOverConnections: (): number[] => [],
    empty: () => new Promise<void>(() => {}),
    closeDescriptor: (fd: number) => void log.push(`closed ${fd}`),
  };
  const short = { liveMs: 50, terminateGraceMs: 50, lastStatsMs: 50, handOverRetryMs: 1 };
  const end = new ParentEnd(host, { ...short, silentMs: 60_000, contestedSilentMs: 60_000, ...deadlines });
  return { host, end };
}

function offer(id: number): Offer {
  return { id, isAdmin: false, name: `l${id}`, configured: 'c', real: 'r', traits: 't', isReusePort: true, fds: [7] };
}

function live(taken: number[], parentShutdownTimeS: number): ToParent {
  return { kind: 'live', taken, parentShutdownTimeS, connectionWorkers: 0 };
}

function greet(end: ParentEnd, version = HOT_RESTART_VERSION, epoch = 4) {
  const link = new TestLink<ToChild>((message) => decodeToChild(encodeToChild(message)));
  let events!: LinkEvents<ToParent>;
  end.receiveHello({ version, epoch }, (given) => {
    events = given;
    return link;
  });
  return { link, events };
}

/** The access to a simulated parent. */
class Door implements ParentAccess {
  events!: LinkEvents<ToChild>;
  isFull = false;
  isAbsent = false;
  absence = 'ECONNREFUSED';
  readonly closed: number[] = [];
  readonly link = new TestLink<ToParent>((message) => message);
  #proof: Parameters<ParentAccess['onProof']>[0] = () => {};
  #distrust: string | undefined;

  constructor(readonly act: (door: Door) => void) {}

  sayHello(): boolean {
    this.act(this);
    if (this.isAbsent) throw Object.assign(new Error('nobody'), { code: this.absence });
    return !this.isFull;
  }
  openLink(events: LinkEvents<ToChild>): Link<ToParent> {
    this.events = events;
    return this.link;
  }
  onProof(listener: Parameters<ParentAccess['onProof']>[0]): void {
    this.#proof = listener;
  }
  distrust(): string | undefined {
    return this.#distrust;
  }
  closeDescriptor(fd: number): void {
    this.closed.push(fd);
  }
  prove(reason?: string): void {
    this.#distrust = reason;
    this.#proof(undefined);
  }
  refuse(reason: string): void {
    this.prove();
    this.events.message({ kind: 'refusal', reason }, []);
  }
}

function join(act: (door: Door) => void, isParentOptional = false, isSupervised = false): Promise<Joined | undefined> {
  const deadlines = { retryMs: 1, welcomeMs: 20 };
  const { signal } = new AbortController();
  return joinParent(new Door(act), { epoch: 3, isParentOptional, isSupervised, signal, deadlines });
}

function joinedWith(link: Link<ToParent>): Joined {
  return { link, firstStartedMs: 0, generation: 1, sockets: [], ticketKeys: undefined, attach() {} };
}
