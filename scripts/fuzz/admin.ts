// Hostile clients of a running server's admin port, over HTTP/1.1 and HTTP/2.
//
// Inputs are sent in batches, after each of which the server is checked. A batch that reveals a defect is sent again to new
// servers, smaller each time, and the smallest failing one is written to a file.

import { readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Random } from '../../src/common/random.js';
import {
  type BatonProcess,
  bootstrap,
  fileAccessLog,
  httpListener,
  routeAllTo,
  startBaton,
  startEchoUpstream,
  staticCluster,
  waitFor,
} from '../../test/e2e/harness/index.js';
import { type AdminInput, adminInput, inputLine } from './admin-inputs.js';
import { smallest } from './minimize.js';
import { defectIn, Finding, Scope } from './scope.js';

/** Concurrent connections. */
const CONNECTIONS = 24;
/** How long to wait for a response: most inputs are incomplete and get none. */
const PATIENCE_MS = 40;
const INPUTS_PER_BATCH = 240;
/**
 * Batches after which caches are full and every kind of response has been sent: memory is compared with its size at that
 * time.
 */
const WARM_UP_BATCHES = 40;
/** Allowed growth above that: heaps grow and shrink by as much. */
const MAX_GROWTH_MB = 192;
/** Descriptors that may stay open when all clients have disconnected: those of upstreams, profiles and logs. */
const SPARE_DESCRIPTORS = 8;
const DEADLINE_MS = 15_000;
/** Counters that inputs must not increment. */
const ERROR_STATS = ['server.uncaught_exceptions', 'server.envoy_bug_failures'];

/** Throws a Finding when the server shows a defect. Returns a summary. */
export async function fuzzAdmin(scope: Scope, random: Random, durationMs: number): Promise<string> {
  const target = await Target.start(scope);
  const end = performance.now() + durationMs;
  let inputs = 0;
  let batches = 0;
  let warmMb = Number.POSITIVE_INFINITY;
  do {
    const batch = Array.from({ length: INPUTS_PER_BATCH }, () => adminInput(random));
    await target.send(batch, CONNECTIONS);
    const defect = await target.defect();
    if (defect !== undefined) throw new Finding(`${defect}\n\n${await explained(batch)}`);
    inputs += batch.length;
    if (++batches === WARM_UP_BATCHES) warmMb = target.memoryMb();
    else if (target.memoryMb() > warmMb + MAX_GROWTH_MB) {
      throw new Finding(`memory went from ${warmMb} MB to ${target.memoryMb()} MB within ${inputs} inputs`);
    }
  } while (performance.now() < end);
  const { answered } = target;
  await target.stop();
  return `${inputs} inputs, ${answered} of them answered; ${target.memoryMb()} MB; no defect`;
}

/** Returns the smallest part of a batch that shows a defect in a new server. */
async function explained(batch: readonly AdminInput[]): Promise<string> {
  const fails = async (inputs: readonly AdminInput[]): Promise<boolean> => {
    const scope = new Scope();
    try {
      const target = await Target.start(scope);
      await target.send(inputs, 1);
      return (await target.defect()) !== undefined;
    } finally {
      await scope.end();
    }
  };
  const inputs = await smallest(batch, fails);
  const path = join(tmpdir(), `baton-fuzz-admin-${process.pid}.jsonl`);
  writeFileSync(path, `${(inputs ?? batch).map(inputLine).join('\n')}\n`);
  const what =
    inputs === undefined ? 'Sent again they do not. The whole batch' : `The ${inputs.length} inputs that do it`;
  return `${what}: ${path}`;
}

class Target {
  readonly #baton: BatonProcess;
  readonly #descriptors: number;
  #memoryMb = 0;
  answered = 0;

  private constructor(baton: BatonProcess) {
    this.#baton = baton;
    this.#descriptors = descriptors(baton).length;
  }

  static async start(scope: Scope): Promise<Target> {
    const echo = await startEchoUpstream(scope);
    const { admin, ...rest } = bootstrap({
      listeners: [httpListener('web', 0, { route_config: routeAllTo('echo') })],
      clusters: [staticCluster('echo', echo.port)],
      extra: { layered_runtime: { layers: [{ name: 'admin', admin_layer: {} }] } },
    });
    const log = fileAccessLog('admin.log', '%START_TIME% %REQ(:METHOD)% %REQ(:PATH)% %RESPONSE_CODE_DETAILS%\n');
    const baton = await startBaton(scope, {
      config: { admin: { ...(admin as object), access_log: [log], profile_path: 'profile' }, ...rest },
    });
    return new Target(baton);
  }

  memoryMb(): number {
    return this.#memoryMb;
  }

  /** Sends inputs, each on its own connection, with a limited number at a time. */
  async send(inputs: readonly AdminInput[], connections: number): Promise<void> {
    const port = this.#baton.adminPort;
    const waiting = [...inputs].reverse();
    const client = async (): Promise<void> => {
      for (let input = waiting.pop(); input !== undefined; input = waiting.pop()) {
        if (this.#baton.exit !== undefined) return;
        if (await exchange(port, input)) this.answered++;
      }
    };
    await Promise.all(Array.from({ length: connections }, client));
  }

  /** Returns the defect of the server after all clients have disconnected, or undefined. */
  async defect(): Promise<string | undefined> {
    const baton = this.#baton;
    try {
      // An input may have changed the log level or started a profile.
      await this.#post('/logging?level=info');
      for (const profiler of ['cpu', 'heap', 'alloc']) await this.#post(`/${profiler}profiler?enable=n`);
      await this.#post('/healthcheck/ok');
      const { status } = await baton.admin('/ready', { deadlineMs: DEADLINE_MS });
      if (status !== 200) return `/ready got ${status}`;
      for (const stat of ERROR_STATS) {
        const count = await baton.stat(stat);
        if (count !== 0) return `${stat} is ${count}\n${defectIn(baton.stderr) ?? tail(baton.stderr)}`;
      }
      const isFree = () => descriptors(baton).length <= this.#descriptors + SPARE_DESCRIPTORS;
      await waitFor(isFree, { deadlineMs: DEADLINE_MS }).catch(() => {
        throw new Error(`descriptors stay open, ${this.#descriptors} were at first:\n${descriptors(baton).join('\n')}`);
      });
    } catch (error) {
      return `${error instanceof Error ? error.message : String(error)}\n${defectIn(baton.stderr) ?? tail(baton.stderr)}`;
    }
    this.#memoryMb = residentMb(baton);
    return defectIn(baton.stderr);
  }

  async stop(): Promise<void> {
    await this.#baton.stop();
  }

  async #post(path: string): Promise<void> {
    await this.#baton.admin(path, { method: 'POST', deadlineMs: DEADLINE_MS });
  }
}

/** Sends an input in its pieces, and disconnects as specified. Returns whether anything was received. */
async function exchange(port: number, { pieces, leaving, reads }: AdminInput): Promise<boolean> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  let hasAnswer = false;
  const over = new Promise<void>((resolve) => {
    socket.on('error', () => resolve());
    socket.on('close', () => resolve());
    socket.on('end', resolve);
    if (!reads) return;
    socket.on('data', () => {
      hasAnswer = true;
    });
  });
  for (const piece of pieces) {
    socket.write(piece);
    await new Promise(setImmediate);
  }
  if (leaving === 'end') socket.end();
  const patience = new Promise<void>((resolve) => setTimeout(resolve, leaving === 'reset' ? 0 : PATIENCE_MS));
  await Promise.race([over, patience]);
  await leave(socket, leaving);
  return hasAnswer;
}

async function leave(socket: Socket, leaving: AdminInput['leaving']): Promise<void> {
  if (leaving === 'reset') socket.resetAndDestroy();
  else socket.destroy();
  if (!socket.closed) await new Promise((resolve) => socket.once('close', resolve));
}

function descriptors({ pid }: BatonProcess): string[] {
  const directory = `/proc/${pid}/fd`;
  return readdirSync(directory).flatMap((name) => {
    try {
      return [readlinkSync(`${directory}/${name}`)];
    } catch {
      // The connection was closed meanwhile.
      return [];
    }
  });
}

function residentMb({ pid }: BatonProcess): number {
  const [, kib] = /^VmRSS:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1')) ?? [];
  return Math.round(Number(kib) / 1024);
}

function tail(text: string): string {
  return text.slice(-3000);
}
