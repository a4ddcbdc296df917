// Mutated messages to the sockets of a hot restart: to a running server as an attacker and as its child, and to a process that
// waits for its parent, as that parent.

import { closeSync, openSync, readdirSync, readlinkSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import type { Random } from '../../src/common/random.js';
import { AddressKind, encodeAddress } from '../../src/io/addresses/address.js';
import { loadShim } from '../../src/io/shim.js';
import { levelRules, setLevelRules } from '../../src/log/logger.js';
import { encodeHello, encodeToChild, encodeToParent } from '../../src/restart/messages.js';
import { HOT_RESTART_VERSION } from '../../src/restart/version.js';
import { HotRestart, type RestartedServer } from '../../src/server/restart/hot-restart.js';
import {
  type BatonProcess,
  bootstrap,
  EpochLine,
  httpListener,
  httpRequest,
  waitFor,
} from '../../test/e2e/harness/index.js';
import { DatagramSender } from '../../test/e2e/restart/restart-peer.js';
import { mutateBytes, pick } from './mutation.js';
import { defectIn, Finding, Scope } from './scope.js';

const HELLO = Buffer.from(encodeHello({ version: HOT_RESTART_VERSION, epoch: 1 }));
const OFFER = { id: 1, isAdmin: false, name: 'web', configured: '127.0.0.1:0', real: '127.0.0.1:1', traits: '' };

const DATAGRAMS: readonly Buffer[] = [
  HELLO,
  Buffer.from(encodeHello({ version: '0.0', epoch: 1 })),
  Buffer.from(encodeHello({ version: HOT_RESTART_VERSION, epoch: 2 ** 32 - 1 })),
  Buffer.alloc(0),
  Buffer.alloc(1, 1),
];
/** Excludes the message that ends the parent. */
const TO_PARENT: readonly Buffer[] = [
  encodeToParent({ kind: 'live', taken: [0, 1, 2 ** 32 - 1], parentShutdownTimeS: 60, connectionWorkers: 0 }),
  encodeToParent({ kind: 'live', taken: [], parentShutdownTimeS: 2 ** 32 - 1, connectionWorkers: 2 ** 32 - 1 }),
  encodeToParent({ kind: 'stats-request' }),
  encodeToParent({
    kind: 'further',
    sockets: [
      { id: 0, count: 1 },
      { id: 1, count: 64 },
    ],
  }),
  encodeToParent({ kind: 'release', ids: [0, 1, 2, 2 ** 32 - 1] }),
].map((bytes) => Buffer.from(bytes));
const TO_CHILD: readonly Buffer[] = [
  encodeToChild({ kind: 'refusal', reason: 'no' }),
  ...[true, false].map((isLast) =>
    encodeToChild({
      kind: 'welcome',
      welcome: {
        ...{ firstStartedMs: 1, generation: 1, isLast },
        sockets: [
          { ...OFFER, isReusePort: true, count: 2 },
          { ...OFFER, id: 2, isAdmin: true, isReusePort: false, count: 1 },
        ],
      },
    }),
  ),
  encodeToChild({
    kind: 'stats',
    stats: {
      ...{ memoryAllocated: 1, connections: 1, isLast: true },
      sections: [{ prefix: 'a.', counters: ['b'], deltas: [1], flushed: [0], gauges: ['c'], values: [2] }],
    },
  }),
  encodeToChild({ kind: 'hand-over' }),
  encodeToChild({ kind: 'empty' }),
  encodeToChild({ kind: 'replaced' }),
  encodeToChild({ kind: 'released' }),
].map((bytes) => Buffer.from(bytes));
const TOKENS: readonly Buffer[] = [
  Buffer.from([0x1a, 0]),
  Buffer.from([0xff, 0xff, 0xff, 0xff, 0x0f]),
  Buffer.from([0x0a, 0xff, 0x7f]),
  Buffer.from([0x80]),
];
/** Maximum messages of one conversation. */
const MAX_MESSAGES = 12;
/** The server is checked after this many inputs. */
const INPUTS_PER_CHECK = 500;
/** Share of the time; the rest is for a running server. */
const CHILD_SHARE = 0.4;
const DEADLINE_MS = 20_000;

const shim = loadShim();

/** Throws a Finding when a process ends, logs a defect, leaks a descriptor, or does not serve. Returns a summary. */
export async function fuzzRestart(_scope: Scope, random: Random, durationMs: number): Promise<string> {
  const end = performance.now() + durationMs;
  const parent = await fuzzParent(random, performance.now() + durationMs * (1 - CHILD_SHARE));
  const levels = levelRules();
  setLevelRules({ level: 'off', components: [], overrides: [] });
  const child = await fuzzChild(random, end);
  setLevelRules(levels);
  return `${parent.datagrams} datagrams, ${parent.links} links to a parent, ${child} to a child; no defect`;
}

async function fuzzParent(random: Random, endMs: number): Promise<{ datagrams: number; links: number }> {
  let datagrams = 0;
  let links = 0;
  while (performance.now() < endMs) {
    const scope = new Scope();
    try {
      const target = await Target.start(scope);
      let inputs = 0;
      // A mutated message may request the server to end.
      while (performance.now() < endMs && !target.hasEnded) {
        for (let count = 0; count < 20; count++, datagrams++) {
          await target.send(random, mutateBytes(random, DATAGRAMS, TOKENS), pick(random, ['parent', 'child']));
        }
        await target.converse(random);
        links++;
        inputs += 21;
        if (inputs < INPUTS_PER_CHECK) continue;
        inputs = 0;
        await target.check();
      }
      await target.finish();
    } finally {
      await scope.end();
    }
  }
  return { datagrams, links };
}

/** A server of epoch 0. */
class Target {
  readonly #line: EpochLine;
  readonly #baton: BatonProcess;
  readonly #port: number;
  readonly #descriptors: number;
  readonly #attacker: DatagramSender;
  readonly #inputs: string[] = [];

  private constructor(line: EpochLine, baton: BatonProcess, port: number, attacker: DatagramSender) {
    this.#line = line;
    this.#baton = baton;
    this.#port = port;
    this.#attacker = attacker;
    this.#descriptors = this.#open;
  }

  static async start(scope: Scope): Promise<Target> {
    const line = new EpochLine(scope);
    const route = { match: { prefix: '/' }, direct_response: { status: 200, body: { inline_string: 'hi' } } };
    const manager = { route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes: [route] }] } };
    const config = bootstrap({ listeners: [httpListener('web', 0, manager)], clusters: [] });
    const baton = await line.start(0, { config, args: ['--hand-over-connections', '--concurrency', '2'] });
    // The child's socket name, at which a parent proves its identity.
    const attacker = new DatagramSender(`${line.socketPath}_child_1`);
    scope.teardown(() => attacker.close());
    return new Target(line, baton, await baton.listenerPort('web'), attacker);
  }

  get hasEnded(): boolean {
    return this.#baton.exit !== undefined;
  }

  /** Sends one datagram, with descriptors of several kinds. */
  async send(random: Random, bytes: Buffer, which: string): Promise<void> {
    const fds = someDescriptors(random);
    try {
      await this.#push(bytes, fds, which);
    } finally {
      for (const fd of fds) shim.closeDescriptor(fd);
    }
  }

  /** Opens a link, and sends mutated messages on it. */
  async converse(random: Random): Promise<void> {
    const [here, there] = shim.socketPair();
    let isOver = false;
    const link = shim.watchMessages(here, {
      onMessage: (_bytes, fds) => fds.forEach(shim.closeDescriptor),
      onWritable() {},
      onEnd: () => {
        isOver = true;
      },
    });
    try {
      await this.#push(HELLO, [there], 'parent');
      for (let left = random.below(MAX_MESSAGES); left > 0 && !isOver; left--) {
        const bytes = mutateBytes(random, TO_PARENT, TOKENS).subarray(0, 64 * 1024);
        const fds = someDescriptors(random);
        this.#note(`link ${bytes.toString('hex')} ${fds.length}`);
        try {
          link.send(bytes, fds);
        } catch {
          isOver = true;
        }
        for (const fd of fds) shim.closeDescriptor(fd);
        if (random.below(3) === 0) await setImmediate();
      }
    } finally {
      shim.closeDescriptor(there);
      link.close();
    }
  }

  /** Checks that the server serves, and has no more descriptors than before. */
  async check(): Promise<void> {
    const isWell = async () => {
      if (this.hasEnded) return true;
      return this.#open <= this.#descriptors && (await httpRequest(this.#port)).body === 'hi';
    };
    await waitFor(isWell, { deadlineMs: DEADLINE_MS }).catch(() =>
      this.#fail(
        `it does not serve, or keeps descriptors: ${this.#open} instead of ${this.#descriptors}\n${this.#baton.stderr.slice(-3000)}`,
      ),
    );
    const defect = defectIn(this.#baton.stderr);
    if (defect !== undefined) this.#fail(defect);
  }

  async finish(): Promise<void> {
    await this.check();
    if (!this.hasEnded) this.#baton.child.kill('SIGTERM');
    await this.#baton.exited;
    const { code } = this.#baton.exit!;
    if (code !== 0) this.#fail(`it ended with status ${code}\n${this.#baton.stderr.slice(-3000)}`);
  }

  async #push(bytes: Buffer, fds: readonly number[], which: string): Promise<void> {
    const cut = bytes.subarray(0, 64 * 1024);
    this.#note(`${which} ${cut.toString('hex')} ${fds.length}`);
    while (!this.hasEnded) {
      try {
        if (this.#attacker.send(this.#line.socketPath, cut, fds, which)) return;
      } catch {
        // It is about to end.
        await waitFor(() => this.hasEnded, { deadlineMs: DEADLINE_MS }).catch(() => this.#fail('it has no socket'));
      }
      await setImmediate();
    }
  }

  #note(input: string): void {
    this.#inputs.push(input.slice(0, 2000));
    if (this.#inputs.length > 50) this.#inputs.shift();
  }

  get #open(): number {
    return readdirSync(`/proc/${this.#baton.pid}/fd`).length;
  }

  #fail(what: string): never {
    throw new Finding(`${what}\n\n${this.#inputs.join('\n')}`);
  }
}

/** Simulates starting processes of epoch 1 within this process. */
async function fuzzChild(random: Random, endMs: number): Promise<number> {
  let links = 0;
  while (performance.now() < endMs) {
    const before = ownDescriptors();
    const inputs: string[] = [];
    await playParent(random, `@baton-fuzz-${process.pid}-${links++}`, inputs);
    const isClean = () => ownDescriptors() <= before;
    await waitFor(isClean, { deadlineMs: DEADLINE_MS }).catch(() => {
      throw new Finding(`descriptors are kept\n\n${inputs.join('\n')}`);
    });
  }
  return links;
}

async function playParent(random: Random, socketPath: string, inputs: string[]): Promise<void> {
  const at = (name: string) =>
    encodeAddress({ kind: AddressKind.Unix, ip: '', port: 0, path: `${socketPath}_${name}` });
  const meeting = shim.watchMessages(shim.openMeetingSocket(at('parent_0')), {
    onMessage: (_bytes, [fd]) => {
      if (fd === undefined) return;
      if (random.below(50) > 0) meeting.sendTo(at('child_1'), Buffer.from([1]), []);
      const link = shim.watchMessages(fd, { onMessage() {}, onWritable() {}, onEnd() {} });
      const send = (bytes: Buffer) => {
        const fds = someDescriptors(random);
        inputs.push(`${bytes.toString('hex').slice(0, 2000)} ${fds.length}`);
        try {
          link.send(bytes.subarray(0, 64 * 1024), fds);
        } catch {
          // The peer has closed the link.
        }
        for (const each of fds) shim.closeDescriptor(each);
      };
      for (let left = random.below(MAX_MESSAGES); left > 0; left--) send(mutateBytes(random, TO_CHILD, TOKENS));
      link.close();
    },
    onWritable() {},
    onEnd() {},
  });
  const restart = HotRestart.open({
    ...{ socketPath, socketMode: 0o600, baseId: 0, epoch: 1, isParentOptional: false, isSupervised: false },
    ...{ takesParentStats: true, parentShutdownTimeS: 1, handsOverConnections: true },
  });
  try {
    const facts = await restart.join(new AbortController().signal);
    restart.begin(NO_SERVER);
    await restart.live();
    await setImmediate();
    facts.parentSockets?.closeRest();
  } catch (error) {
    // The error must state why the process does not take over.
    if (!(error instanceof Error) || error.name !== 'BatonError') {
      throw new Finding(`${error instanceof Error ? error.stack : String(error)}\n\n${inputs.join('\n')}`);
    }
  } finally {
    restart.ending();
    await restart.close();
    meeting.close();
  }
}

/** Ignores messages to the child. */
const NO_SERVER: RestartedServer = {
  concurrency: 2,
  ticketKeys: () => undefined,
  offer: () => [],
  offerNewSockets: () => [],
  onSockets() {},
  socketsReceived() {},
  childLost() {},
  addSockets() {},
  servingStarted() {},
  handOver: async () => {},
  furtherSockets: () => [],
  release: async () => {},
  reclaim: () => Promise.resolve(),
  async *exportStats() {},
  importStats() {},
  parentEnded() {},
  handOverConnections: () => [],
  takeConnections: (channels) => channels.forEach(shim.closeDescriptor),
  empty: () => new Promise(() => {}),
  end() {},
};

/** Returns usually no descriptor, and sometimes one that is not a link. The caller closes them. */
function someDescriptors(random: Random): number[] {
  const fds: number[] = [];
  while (random.below(2) === 0 && fds.length < 64) {
    switch (random.below(3)) {
      case 0:
        fds.push(openSync('/dev/null', 'r'));
        break;
      case 1:
        fds.push(...shim.socketPair());
        break;
      default:
        fds.push(openSync('/', 'r'));
    }
  }
  const left = fds.splice(64);
  for (const fd of left) closeSync(fd);
  return fds;
}

function ownDescriptors(): number {
  return readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return /^socket:|^\/dev\/null$|^\/$/.test(readlinkSync(`/proc/self/fd/${fd}`));
    } catch {
      return false;
    }
  }).length;
}
