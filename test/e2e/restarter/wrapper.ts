// Starts the wrapper with a program controlled by the test, and a service manager that records messages.

import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { AddressKind, encodeAddress } from '../../../src/io/addresses/address.js';
import { loadShim } from '../../../src/io/shim.js';
import { type Exit, endsWithTest, type Teardown, tempDir, waitFor, withDeadline } from '../harness/index.js';

const MAIN = fileURLToPath(new URL('../../../baton/restarter/main.js', import.meta.url));
const PROGRAM = fileURLToPath(new URL('./program.js', import.meta.url));

/** The first report of a child. */
interface Hello {
  readonly epoch: number;
  /** As the child sees itself: in a separate PID namespace the test sees other pids. */
  readonly pid: number;
  readonly args: readonly string[];
  readonly notify: string;
  readonly usec?: string;
  readonly watchdogPid?: string;
}

/** One process of the program. */
export class Child {
  readonly hello: Hello;
  /** Names of signals, and completed commands, in order. */
  readonly received: string[] = [];
  isGone = false;
  readonly #socket: Socket;

  constructor(hello: Hello, socket: Socket) {
    this.hello = hello;
    this.#socket = socket;
  }

  get pid(): number {
    return this.hello.pid;
  }

  /** Sends the command 'notify A=1 B=2', 'ignore-sigterm' or 'leave-orphan <seconds>', and waits for its completion. */
  async command(command: string): Promise<void> {
    this.#socket.write(`${command}\n`);
    await this.receives(`done: ${command}`);
  }

  /** Reports that it is live. */
  ready(): Promise<void> {
    return this.command('notify READY=1');
  }

  async exit(status: number): Promise<void> {
    this.#socket.write(`exit ${status}\n`);
    await this.leaves();
  }

  async receives(what: string, times = 1): Promise<void> {
    await waitFor(() => this.received.filter((line) => line === what).length >= times, {
      what: `${what} at epoch ${this.hello.epoch}`,
    });
  }

  async leaves(): Promise<void> {
    await waitFor(() => this.isGone, { what: `the exit of epoch ${this.hello.epoch}` });
  }
}

export interface WrapperOptions {
  /** Arguments of the wrapper. */
  readonly args?: readonly string[];
  /** Arguments of the program. */
  readonly programArgs?: readonly string[];
  readonly env?: Record<string, string>;
  /** A command that executes the wrapper, which is appended to it. */
  readonly wrapper?: readonly string[];
  /** A command that runs the program, which is appended to it. */
  readonly around?: readonly string[];
  /** Replaces the controlled program. */
  readonly command?: readonly string[];
}

export class Wrapper {
  readonly process: ChildProcess;
  /** A private directory; TMPDIR of the wrapper. */
  readonly directory: string;
  readonly exited: Promise<Exit>;
  /** All children so far, in order. */
  readonly children: Child[] = [];
  stdout = '';
  stderr = '';

  constructor(process: ChildProcess, directory: string) {
    this.process = process;
    this.directory = directory;
    process.stdout!.setEncoding('utf8').on('data', (text: string) => (this.stdout += text));
    process.stderr!.setEncoding('utf8').on('data', (text: string) => (this.stderr += text));
    this.exited = new Promise((resolve) => {
      process.once('close', (code, signal) => resolve({ code, signal }));
    });
  }

  /** Waits for the `nth` child, from 0. */
  async child(nth: number): Promise<Child> {
    await waitFor(() => this.children.length > nth || this.process.exitCode !== null, { what: `child ${nth}` });
    const child = this.children[nth];
    if (child === undefined) throw new Error(`the wrapper ended:\n${this.stdout}${this.stderr}`);
    return child;
  }

  async logs(text: string | RegExp, times = 1): Promise<void> {
    await waitFor(() => this.stdout.split(text).length > times, { what: `${text} in the log:\n${this.stdout}` });
  }

  kill(signal: NodeJS.Signals): void {
    this.process.kill(signal);
  }

  /** Returns its exit status, when it exits on its own. */
  async status(): Promise<number | null> {
    return (await withDeadline(this.exited, 'the exit of the wrapper')).code;
  }

  /** Ends it with SIGTERM. */
  async end(): Promise<number | null> {
    this.kill('SIGTERM');
    return this.status();
  }
}

/** Starts the wrapper; running processes are killed when the test ends. */
export async function startWrapper(t: Teardown, options: WrapperOptions = {}): Promise<Wrapper> {
  const { args = [], programArgs = [], env = {} } = options;
  const directory = tempDir(t);
  const sockets = new Set<Socket>();
  let wrapper: Wrapper | undefined;
  const server = createServer((socket) => {
    sockets.add(socket);
    let child: Child | undefined;
    createInterface({ input: socket }).on('line', (line) => {
      if (child !== undefined) child.received.push(line);
      else wrapper!.children.push((child = new Child(JSON.parse(line) as Hello, socket)));
    });
    socket.on('error', () => {});
    socket.on('close', () => child !== undefined && (child.isGone = true));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const command = options.command ?? [
    ...(options.around ?? []),
    process.execPath,
    PROGRAM,
    String(port),
    ...programArgs,
  ];
  const [first, ...rest] = [...(options.wrapper ?? []), process.execPath, MAIN, ...args, ...command];
  const { NOTIFY_SOCKET: _, ...inherited } = process.env;
  const child = spawn(first!, rest, {
    cwd: directory,
    env: { ...inherited, TMPDIR: directory, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  wrapper = new Wrapper(child, directory);
  // Teardowns run in reverse order: programs find their sockets closed and exit, the wrapper is killed, and all output has been
  // read.
  t.teardown(() => wrapper.exited);
  endsWithTest(t, child);
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return wrapper;
}

/** A service manager: a socket whose messages are recorded. */
export class Manager {
  readonly env: Record<string, string>;
  /** Each message as its lines. */
  readonly messages: string[][] = [];
  /** The senders of the messages. */
  readonly pids: number[] = [];

  /** `path` may be '@name'. */
  constructor(t: Teardown, path: string) {
    const shim = loadShim();
    const address = encodeAddress({ kind: AddressKind.Unix, ip: '', port: 0, path });
    const socket = shim.watchMessages(shim.openMeetingSocket(address), {
      onMessage: (bytes, _fds, credentials) => {
        this.messages.push(Buffer.from(bytes).toString().split('\n'));
        this.pids.push(credentials!.pid);
      },
      onWritable() {},
      onEnd() {},
    });
    t.teardown(() => socket.close());
    this.env = { NOTIFY_SOCKET: path };
  }

  static inDirectory(t: Teardown): Manager {
    return new Manager(t, join(tempDir(t), 'manager'));
  }

  /** Waits for a message with all these lines, after the ones that were found before. */
  async receives(...lines: string[]): Promise<void> {
    this.#from = await waitFor(
      () => {
        const at = this.messages.findIndex(
          (each, index) => index >= this.#from && lines.every((l) => each.includes(l)),
        );
        return at < 0 ? undefined : at + 1;
      },
      { what: `${lines.join(' ')} in ${JSON.stringify(this.messages)}` },
    );
  }
  #from = 0;
}

/** Returns the children of a process, zombies included. */
export function childrenOf(pid: number): { readonly pid: number; readonly name: string; readonly isZombie: boolean }[] {
  const pids = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').split(' ').filter(Boolean).map(Number);
  return pids.flatMap((child) => {
    const stat = statOf(child);
    const end = stat.lastIndexOf(')');
    return end < 0
      ? []
      : [{ pid: child, name: stat.slice(stat.indexOf('(') + 1, end), isZombie: stat[end + 2] === 'Z' }];
  });
}

/** Returns '' when the process has exited meanwhile. */
function statOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch {
    return '';
  }
}
