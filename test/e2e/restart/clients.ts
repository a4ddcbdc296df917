// Clients that detect every effect of a restart, and the origin behind the proxy: scripts/bench/native.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { packagePath } from '../../../src/common/package/package-root.js';
import { endsWithTest, type Teardown, tempDir, waitFor, withDeadline } from '../harness/index.js';

/** HTTP and raw TCP on 127.0.0.1. */
export interface Ports {
  http: number;
  tcp: number;
}

/** Number of clients of each kind, and their behaviour: explained at the top of clients.c. */
export interface ClientsSettings {
  keepalive?: number;
  idle?: number;
  post?: number;
  pipelined?: number;
  fresh?: number;
  stream?: number;
  short?: number;
  /** Requests a second; unlimited when left out. */
  rate?: number;
  /** Seconds. */
  deadline?: number;
  /** Minimum lifetime of a TCP stream in seconds; unlimited when left out. */
  cut?: number;
}

/** Results of the clients over some time. Kinds of failures are explained in tally.h. */
export interface Tally {
  seconds: number;
  /** Answered HTTP requests. */
  requests: number;
  failures: number;
  /** The longest time without any answered request. */
  longestGapMs: number;
  longestAnswerMs: number;
  /** The longest time for which the clients themselves were not scheduled: a shorter gap is not the proxy's. */
  longestStallMs: number;
  connections: number;
  /** Unrequested `connection: close` responses. */
  announced: number;
  /** Pipelined requests after such a response, which were sent again on a new connection. */
  repeated: number;
  /** TCP streams that the proxy closed at their minimum lifetime or later. */
  ended: number;
  endedByReset: number;
  streamBytes: number;
  /** Connections that failed because the clients ran out of ports or descriptors. */
  ownErrors: number;
  done: Record<string, number>;
  failed: Record<string, number>;
}

export class Clients {
  readonly #child: ChildProcess;
  readonly #settings: ClientsSettings;
  readonly #waiting: ((tally: Tally) => void)[] = [];
  readonly #ended: Promise<number | null>;
  /** The first hundred failures, one line of JSON each. */
  readonly failures: string[] = [];

  constructor(child: ChildProcess, settings: ClientsSettings) {
    this.#child = child;
    this.#settings = settings;
    this.#ended = new Promise((resolve) => child.once('close', resolve));
    createInterface({ input: child.stdout! }).on('line', (line) => {
      const { event, ...rest } = JSON.parse(line) as Tally & { event: string };
      if (event === 'failure') this.failures.push(line);
      else this.#waiting.shift()?.(rest);
    });
  }

  get pid(): number {
    return this.#child.pid!;
  }

  /** Returns the results since the last mark. */
  mark(): Promise<Tally> {
    return this.#ask(() => this.#child.stdin!.write('\n'));
  }

  /** Waits until each kind of client has had a further response. */
  async answersOfEachKind(): Promise<void> {
    const { done } = await this.mark();
    const left = new Set(Object.keys(done).filter((kind) => this.#settings[kind as keyof ClientsSettings] !== 0));
    await waitFor(
      async () => {
        for (const [kind, count] of Object.entries((await this.mark()).done)) if (count > 0) left.delete(kind);
        return left.size === 0;
      },
      { what: 'a response to each kind of client', deadlineMs: KINDS_DEADLINE_MS },
    );
  }

  /** Lets requests in flight finish, ends the clients, and returns the total results. */
  async finish(): Promise<Tally> {
    const tally = await this.#ask(() => this.#child.stdin!.end());
    await this.#ended;
    return tally;
  }

  #ask(say: () => void): Promise<Tally> {
    const answer = new Promise<Tally>((resolve, reject) => {
      this.#waiting.push(resolve);
      void this.#ended.then((code) => reject(new Error(`the clients exited with status ${code}`)));
    });
    say();
    return withDeadline(answer, "the clients' results", ANSWER_DEADLINE_MS);
  }
}

/** Starts the origin, whose responses the clients can verify. */
export async function startOrigin(t: Teardown): Promise<Ports> {
  const child = spawnProgram(t, compile(t, 'echo'), []);
  const line = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout! }).once('line', resolve);
    child.once('exit', (code) => reject(new Error(`the origin exited with status ${code}`)));
  });
  const [http, tcp] = line.split(' ').map(Number);
  return { http: http!, tcp: tcp! };
}

/** Starts clients of the proxy on these ports. */
export function startClients(t: Teardown, ports: Ports, settings: ClientsSettings = {}): Clients {
  const args = Object.entries(settings).map(([name, value]) => `${name}=${value}`);
  const child = spawnProgram(t, compile(t, 'clients'), [String(ports.http), String(ports.tcp), ...args]);
  return new Clients(child, settings);
}

/** The clients' own deadlines come first; this one catches a program that hangs. */
const ANSWER_DEADLINE_MS = 120_000;
/** For slow machines. */
const KINDS_DEADLINE_MS = 60_000;

function compile(t: Teardown, name: string): string {
  const program = join(tempDir(t), name);
  const source = packagePath('scripts/bench/native', `${name}.c`);
  execFileSync(process.env.CC ?? 'cc', ['-O2', '-o', program, source, '-lm'], { stdio: 'inherit' });
  return program;
}

function spawnProgram(t: Teardown, program: string, args: string[]): ChildProcess {
  return endsWithTest(t, spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] }));
}
