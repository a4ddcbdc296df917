// Clients that notice everything a restart could do to them, and the origin behind the proxy: scripts/bench/native.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { packagePath } from '../../../src/common/package/package-root.js';
import { endsWithTest, type Teardown, tempDir, waitFor, withDeadline } from '../harness/index.js';

/** HTTP and bare TCP on 127.0.0.1. */
export interface Ports {
  http: number;
  tcp: number;
}

/** How many clients of each kind, and how they behave: the head of clients.c explains each. */
export interface ClientsSettings {
  keepalive?: number;
  idle?: number;
  post?: number;
  pipelined?: number;
  fresh?: number;
  stream?: number;
  short?: number;
  /** Requests a second; as many as are answered when left out. */
  rate?: number;
  /** Seconds. */
  deadline?: number;
  /** Seconds that a TCP stream must live; for ever when left out. */
  cut?: number;
}

/** What clients have seen in some time. Failures by kind are explained in tally.h. */
export interface Tally {
  seconds: number;
  /** Answered HTTP requests. */
  requests: number;
  failures: number;
  /** The longest time in which no request at all was answered. */
  longestGapMs: number;
  longestAnswerMs: number;
  /** The longest time for which the clients themselves were not run: no gap below it is the proxy's. */
  longestStallMs: number;
  connections: number;
  /** Answers with `connection: close` to requests that had not asked for it. */
  announced: number;
  /** Pipelined requests behind such an answer, which were sent again on a new connection. */
  repeated: number;
  /** TCP streams that the proxy ended when they were old enough. */
  ended: number;
  endedByReset: number;
  streamBytes: number;
  /** Connections that could not be made because ports or descriptors were short on the clients' side. */
  ownErrors: number;
  done: Record<string, number>;
  failed: Record<string, number>;
}

export class Clients {
  readonly #child: ChildProcess;
  readonly #settings: ClientsSettings;
  readonly #waiting: ((tally: Tally) => void)[] = [];
  readonly #ended: Promise<number | null>;
  /** The first hundred failures, a line of JSON each. */
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

  /** What was seen since the last mark. */
  mark(): Promise<Tally> {
    return this.#ask(() => this.#child.stdin!.write('\n'));
  }

  /** Waits until every kind of client has been answered anew. */
  async answersOfEachKind(): Promise<void> {
    const { done } = await this.mark();
    const left = new Set(Object.keys(done).filter((kind) => this.#settings[kind as keyof ClientsSettings] !== 0));
    await waitFor(
      async () => {
        for (const [kind, count] of Object.entries((await this.mark()).done)) if (count > 0) left.delete(kind);
        return left.size === 0;
      },
      { what: 'an answer to each kind of client', deadlineMs: KINDS_DEADLINE_MS },
    );
  }

  /** Lets what is under way finish, ends the clients, and gives what was seen in all. */
  async finish(): Promise<Tally> {
    const tally = await this.#ask(() => this.#child.stdin!.end());
    await this.#ended;
    return tally;
  }

  #ask(say: () => void): Promise<Tally> {
    const answer = new Promise<Tally>((resolve, reject) => {
      this.#waiting.push(resolve);
      void this.#ended.then((code) => reject(new Error(`the clients ended with status ${code}`)));
    });
    say();
    return withDeadline(answer, 'an answer of the clients', ANSWER_DEADLINE_MS);
  }
}

/** Starts the origin whose answers the clients can check. */
export async function startOrigin(t: Teardown): Promise<Ports> {
  const child = spawnProgram(t, compile(t, 'echo'), []);
  const line = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout! }).once('line', resolve);
    child.once('exit', (code) => reject(new Error(`the origin ended with status ${code}`)));
  });
  const [http, tcp] = line.split(' ').map(Number);
  return { http: http!, tcp: tcp! };
}

/** Starts clients of the proxy that listens on these ports. */
export function startClients(t: Teardown, ports: Ports, settings: ClientsSettings = {}): Clients {
  const args = Object.entries(settings).map(([name, value]) => `${name}=${value}`);
  const child = spawnProgram(t, compile(t, 'clients'), [String(ports.http), String(ports.tcp), ...args]);
  return new Clients(child, settings);
}

/** The clients' own deadlines come first; this one is for a program that hangs. */
const ANSWER_DEADLINE_MS = 120_000;
/** Where a machine is slow. */
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
