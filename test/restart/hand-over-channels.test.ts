// A connection that is handed over has one owner at every step, whichever process dies, and its peer loses no byte.

import { type ChildProcess, fork } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import {
  decodeConnection,
  decodeMessage,
  encodeConnection,
  HandOverKind,
} from '../../src/restart/hand-over/hand-over-wire.js';
import { endsWithTest } from '../e2e/harness/environment.js';
import { pattern, shim, until } from '../native-shim/harness/harness.js';

interface Steps {
  parent?: string;
  child?: string;
}

class Journey {
  readonly reports: string[] = [];
  answer = '';
  isOver = false;
  parent!: ChildProcess;
  child!: ChildProcess;
  #peer: Socket | undefined;
  readonly #server = createServer((socket) => this.#connected(socket));

  /** The connection begins at the parent. */
  static async begin(t: Test, steps: Steps): Promise<Journey> {
    const journey = new Journey();
    t.teardown(() => {
      journey.#peer?.destroy();
      journey.#server.close();
    });
    await new Promise<void>((resolve) => journey.#server.listen(0, '127.0.0.1', resolve));
    const { port } = journey.#server.address() as AddressInfo;
    const [here, there] = shim.socketPair();
    journey.parent = endsWithTest(t, journey.#start('parent', here, port, steps.parent));
    journey.child = endsWithTest(t, journey.#start('child', there, port, steps.child));
    for (const fd of [here, there]) shim.closeDescriptor(fd);
    await until(() => journey.reports.filter((text) => text === 'ready').length === 2, 'both processes');
    return journey;
  }

  /** Hands it over, and sends to its owner. Returns the answer, or undefined when the connection ends. */
  async handOver(): Promise<string | undefined> {
    this.parent.send('go');
    await until(() => this.reports.includes('frozen'), 'the parent to let go');
    this.#peer!.write('first');
    await until(() => this.isOver || this.answer.endsWith('first'), `an answer (${this.reports})`);
    return this.isOver ? undefined : this.answer;
  }

  /** Kills the other process after the first answer, and sends again. */
  async isKept(): Promise<boolean> {
    const owner = this.answer.split(':')[0];
    this.#peer!.write(' and more');
    const expected = `${this.answer}${owner}:  and more`;
    await until(() => this.isOver || this.answer.length >= expected.length, 'another answer');
    return this.answer === expected;
  }

  #connected(socket: Socket): void {
    this.#peer = socket;
    socket.on('data', (chunk) => (this.answer += chunk));
    socket.on('close', () => (this.isOver = true));
    socket.on('error', () => (this.isOver = true));
  }

  #start(role: string, fd: number, port: number, step = ''): ChildProcess {
    const program = fileURLToPath(new URL('./hand-over-end.js', import.meta.url));
    const child = fork(program, [role, String(port), step], { stdio: ['ignore', 'inherit', 'inherit', 'ipc', fd] });
    child.on('message', (text) => this.reports.push(String(text)));
    return child;
  }
}

/** Killed by a signal (proc(5)). */
function isStopped({ pid }: ChildProcess): boolean {
  return /^\d+ \(.*\) T /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
}

const CASES: readonly (Steps & { owner: 'parent' | 'child' | undefined })[] = [
  { owner: 'child' },
  { child: 'refuses', owner: 'parent' },
  { child: 'before-receive-Offer', owner: 'parent' },
  { child: 'before-send-Accept', owner: 'parent' },
  { child: 'after-send-Accept', owner: 'parent' },
  { child: 'before-receive-Commit', owner: 'parent' },
  { child: 'before-send-Begun', owner: 'parent' },
  { child: 'after-send-Begun', owner: undefined },
  { parent: 'before-send-Offer', owner: undefined },
  { parent: 'after-send-Offer', owner: 'child' },
  { parent: 'before-receive-Accept', owner: 'child' },
  { parent: 'before-send-Commit', owner: 'child' },
  { parent: 'after-send-Commit', owner: 'child' },
  { parent: 'before-receive-Begun', owner: 'child' },
];

for (const { owner, ...steps } of CASES) {
  const [who] = Object.keys(steps);
  const what = who === undefined ? 'nobody dies' : `the ${who} ${steps[who as keyof Steps]}`;
  t.test(`${what}: the connection is ${owner === undefined ? 'lost with it' : `the ${owner}'s`}`, async (t) => {
    const journey = await Journey.begin(t, steps);
    const answer = await journey.handOver();
    t.equal(answer, owner === undefined ? undefined : `${owner}: first`);
    if (owner !== undefined) t.ok(await journey.isKept(), 'and stays so');
  });
}

t.test('a child that hangs loses its offers, even after it resumes', async (t) => {
  const journey = await Journey.begin(t, { child: 'stops-before-receive-Offer' });
  t.equal(await journey.handOver(), 'parent: first');
  t.ok(journey.reports.includes('stays: the child process has not answered in time'));
  journey.child.kill('SIGCONT');
  t.ok(await journey.isKept());
  // The parent's end does not transfer the connection to the child, either.
  journey.parent.kill('SIGKILL');
  await until(() => journey.isOver, 'the end');
});

t.test('a child that hangs after Accept owns the connection when it resumes', async (t) => {
  const journey = await Journey.begin(t, { child: 'stops-after-send-Accept' });
  const answer = journey.handOver();
  await until(() => isStopped(journey.child), 'the child to stop');
  journey.child.kill('SIGCONT');
  t.equal(await answer, 'child: first');
  t.ok(await journey.isKept());
});

t.test('a connection of any size survives encoding; truncated or forged messages are refused', (t) => {
  const facts = {
    listener: 'lïstener',
    fingerprint: 'f',
    remote: { kind: 0, ip: '::1', port: 1, path: '' },
    local: '',
    startMonotonicMs: 1.5,
    progress: { a: 1, b: true, c: 'text' },
  };
  for (const size of [0, 1, 61_440, 300_000]) {
    const sockets = [
      { fd: 10, pending: pattern(size), ended: true, finAsked: false },
      { fd: 11, pending: pattern(size >> 1), ended: false, finAsked: true },
    ];
    const input = pattern(size >> 2);
    const messages = encodeConnection(7, { facts, sockets, input }).map((bytes) => decodeMessage(bytes));
    const last = messages.at(-1)!;
    t.same([last.kind, last.key], [HandOverKind.Offer, 7]);
    const bytes = Buffer.concat(messages.slice(0, -1).map(({ body }) => body));
    const arrived = decodeConnection(last.body, bytes, [20, 21]);
    t.same(arrived.facts, facts);
    t.same(
      arrived.sockets.map(({ fd, ended, finAsked }) => ({ fd, ended, finAsked })),
      [
        { fd: 20, ended: true, finAsked: false },
        { fd: 21, ended: false, finAsked: true },
      ],
    );
    t.ok(Buffer.from(arrived.sockets[0]!.pending).equals(sockets[0]!.pending));
    t.ok(Buffer.from(arrived.sockets[1]!.pending).equals(sockets[1]!.pending));
    t.ok(Buffer.from(arrived.input).equals(input));
    t.throws(() => decodeConnection(last.body, bytes, [20]), { code: 'ERR_HAND_OVER' });
    t.throws(() => decodeConnection(last.body, Buffer.concat([bytes, Buffer.from('x')]), [20, 21]), {
      code: 'ERR_HAND_OVER',
    });
    t.throws(() => decodeConnection(last.body.subarray(1), bytes, [20, 21]), { code: 'ERR_HAND_OVER' });
  }
  const offer = { facts, input: 0, sockets: [{ pending: 0, ended: false, finAsked: false }] };
  const decode = (made: unknown) => decodeConnection(Buffer.from(JSON.stringify(made)), new Uint8Array(0), [20]);
  t.equal(decode(offer).sockets.length, 1);
  for (const made of [
    null,
    {},
    ...[null, 1, {}, { progress: null }, { progress: 1 }].map((facts) => ({ ...offer, facts })),
    ...[null, -1, 0.5, '0'].map((input) => ({ ...offer, input })),
    ...[null, {}, [null], [{}], [1]].map((sockets) => ({ ...offer, sockets })),
    ...['pending', 'ended', 'finAsked'].map((name) => ({ ...offer, sockets: [{ ...offer.sockets[0], [name]: 'x' }] })),
  ]) {
    t.throws(() => decode(made), { code: 'ERR_HAND_OVER' }, JSON.stringify(made));
  }
  t.throws(() => decodeMessage(new Uint8Array([HandOverKind.Commit, 0])), { code: 'ERR_HAND_OVER' });
  t.throws(() => decodeMessage(new Uint8Array([99, 0, 0, 0, 0])), { code: 'ERR_HAND_OVER' });
  t.end();
});
