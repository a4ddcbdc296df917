// Starts the real program as a process of its own, waits until it serves, and ends it with the test.

import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Config } from './bootstrap.js';
import { endsWithTest, type Teardown, tempDir } from './environment.js';
import { type HttpAnswer, type HttpRequestOptions, httpRequest } from './http-client.js';
import { DEFAULT_DEADLINE_MS, waitFor, withDeadline } from './wait-for.js';

export interface BatonOptions {
  /** An object is written as it is; a string is the text of the file, for what an object cannot say. */
  config?: Config | string;
  /** The program's entry file; the one that was built together with this file when left out. */
  program?: string;
  /** Another program with the same command line, in place of Baton: the path of a real Envoy. */
  command?: string | undefined;
  /** Name of the configuration file; its extension decides how it is read. */
  configName?: string;
  /** Further arguments. `--concurrency 1` and `--disable-hot-restart` are given unless these say otherwise. */
  args?: readonly string[];
  /** Leaves these two out, for what happens without them. */
  plain?: boolean;
  /** Added to the environment. */
  env?: Record<string, string>;
  /** Options of the node process itself. */
  nodeArgs?: readonly string[];
  /** A command that executes the program given behind it, such as `['sh', '-c', 'ulimit -n 64; exec "$@"', 'sh']`. */
  wrapper?: readonly string[];
  /** 'live' (default) waits until /ready answers 200, 'admin' until admin answers at all, 'spawned' for nothing. */
  wait?: 'live' | 'admin' | 'spawned';
  deadlineMs?: number;
}

export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** One running (or ended) Baton process. */
export class BatonProcess {
  readonly child: ChildProcess;
  /** A directory for the test's own files; it goes with the test. */
  readonly directory: string;
  readonly configPath: string;
  /** Settles when the process has ended and all its output has been read. */
  readonly exited: Promise<Exit>;
  #stdout = '';
  #stderr = '';
  #exit: Exit | undefined;

  constructor(child: ChildProcess, directory: string, configPath: string) {
    this.child = child;
    this.directory = directory;
    this.configPath = configPath;
    child.stdout!.setEncoding('utf8').on('data', (chunk: string) => {
      this.#stdout += chunk;
    });
    child.stderr!.setEncoding('utf8').on('data', (chunk: string) => {
      this.#stderr += chunk;
    });
    this.exited = new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code, signal) => {
        this.#exit = { code, signal };
        resolve(this.#exit);
      });
    });
    // Whoever needs the result awaits it; a failed spawn must not end the test process as an unhandled rejection.
    this.exited.catch(() => {});
  }

  get pid(): number {
    return this.child.pid!;
  }

  get stdout(): string {
    return this.#stdout;
  }

  get stderr(): string {
    return this.#stderr;
  }

  /** Undefined while the process runs. */
  get exit(): Exit | undefined {
    return this.#exit;
  }

  /** The program has written down where its admin interface listens. */
  get hasAdminAddress(): boolean {
    return existsSync(join(this.directory, ADMIN_ADDRESS_FILE));
  }

  /** Where the admin interface listens, as the program itself wrote it down. */
  get adminPort(): number {
    const address = readFileSync(join(this.directory, ADMIN_ADDRESS_FILE), 'utf8').trim();
    return Number(address.slice(address.lastIndexOf(':') + 1));
  }

  /** One request to the admin interface. */
  admin(path: string, options?: HttpRequestOptions): Promise<HttpAnswer> {
    return httpRequest(this.adminPort, path, options);
  }

  /** The port of a listener, asked from /listeners: so configurations can say port 0. */
  async listenerPort(name: string): Promise<number> {
    const { body } = await this.admin('/listeners');
    const line = body.split('\n').find((each) => each.startsWith(`${name}::`));
    if (line === undefined) throw new Error(`no listener ${name} in ${JSON.stringify(body)}`);
    return Number(line.slice(line.lastIndexOf(':') + 1));
  }

  /** The port of a listener as the log says it: for a server without an admin interface, or one that is not live yet. */
  async loggedPort(name: string): Promise<number> {
    const line = new RegExp(`listener '${name}' listens on .*:([0-9]+)\\n`);
    const match = await waitFor(() => line.exec(this.#stderr), { what: `listener ${name} in the log` });
    return Number(match[1]);
  }

  /** Counters and gauges whose names begin so, by the rest of their names. */
  async stats(prefix = ''): Promise<Record<string, number>> {
    const stats = Object.entries(await this.#numbers(`^${escaped(prefix)}`));
    return Object.fromEntries(stats.map(([name, value]) => [name.slice(prefix.length), value]));
  }

  /** The value of one counter or gauge; undefined when there is no such stat. */
  async stat(name: string): Promise<number | undefined> {
    return (await this.#numbers(`^${escaped(name)}$`))[name];
  }

  /** Waits until stats have these values, which follow traffic a little later. */
  async waitForStats(expected: Readonly<Record<string, number>>, deadlineMs = DEFAULT_DEADLINE_MS): Promise<void> {
    const filter = `^(${Object.keys(expected).map(escaped).join('|')})$`;
    let differences: string[] = [];
    const haveValues = async () => {
      const stats = await this.#numbers(filter);
      const differing = Object.entries(expected).filter(([name, value]) => stats[name] !== value);
      differences = differing.map(([name, value]) => `${name} is ${stats[name]}, not ${value}`);
      return differences.length === 0;
    };
    await waitFor(haveValues, { what: Object.keys(expected).join(', '), deadlineMs }).catch((cause: unknown) => {
      throw new Error(differences.join('\n') || 'no stats', { cause });
    });
  }

  waitForStat(name: string, expected: number, deadlineMs?: number): Promise<void> {
    return this.waitForStats({ [name]: expected }, deadlineMs);
  }

  async #numbers(filter: string): Promise<Record<string, number>> {
    const { body } = await this.admin(`/stats?filter=${encodeURIComponent(filter)}`);
    const pairs = body.split('\n').map((line) => line.split(': '));
    return Object.fromEntries(
      pairs.filter(([, value]) => /^-?\d+$/.test(value!)).map(([name, value]) => [name, Number(value)]),
    );
  }

  /** Sends SIGTERM and expects a clean end: status 0 before the deadline. */
  async stop(deadlineMs = DEFAULT_DEADLINE_MS): Promise<void> {
    if (this.#exit === undefined) this.child.kill('SIGTERM');
    const exit = await withDeadline(this.exited, 'the end after SIGTERM', deadlineMs);
    if (exit.code !== 0) {
      throw new Error(`ended with status ${exit.code}, signal ${exit.signal}:\n${this.#stderr}`);
    }
  }

  /** Sends a signal and waits for the end, however it comes. */
  kill(signal: NodeJS.Signals = 'SIGKILL', deadlineMs = DEFAULT_DEADLINE_MS): Promise<Exit> {
    if (this.#exit === undefined) this.child.kill(signal);
    return withDeadline(this.exited, `the end after ${signal}`, deadlineMs);
  }
}

/** A regular expression for this text alone. */
const escaped = (text: string) => text.replace(/[^\w\u0080-\uffff]/g, '\\$&');

/** Starts Baton; the test's end kills it if it still runs. Throws with its stderr when it ends before it serves. */
export async function startBaton(t: Teardown, options: BatonOptions = {}): Promise<BatonProcess> {
  const { command, config, configName = 'config.yaml', args = [], env = {}, nodeArgs = [], wrapper = [] } = options;
  const { program = MAIN, wait = 'live', deadlineMs = DEFAULT_DEADLINE_MS, plain = false } = options;
  const directory = tempDir(t);
  const configPath = join(directory, configName);
  const all = command === undefined ? [process.execPath, ...nodeArgs, program] : [command];
  if (config !== undefined) {
    // JSON is YAML, so one writer serves both extensions.
    writeFileSync(configPath, typeof config === 'string' ? config : JSON.stringify(config, null, 2));
    all.push('-c', configPath);
  }
  if (!args.includes('--admin-address-path')) all.push('--admin-address-path', join(directory, ADMIN_ADDRESS_FILE));
  if (!plain && !args.includes('--concurrency')) all.push('--concurrency', '1');
  if (!plain && !args.some((arg) => HOT_RESTART_OPTIONS.includes(arg))) all.push('--disable-hot-restart');
  all.push(...args);

  const [executable, ...commandArgs] = [...wrapper, ...all];
  const child = spawn(executable!, commandArgs, {
    cwd: directory,
    env: { ...cleanEnvironment(), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const baton = new BatonProcess(endsWithTest(t, child), directory, configPath);
  if (wait !== 'spawned') await waitUntilReady(baton, wait, deadlineMs);
  return baton;
}

const ADMIN_ADDRESS_FILE = 'admin-address';
const HOT_RESTART_OPTIONS = ['--base-id', '--use-dynamic-base-id', '--restart-epoch', '--disable-hot-restart'];

/** The same as single modules, which a module that a test has it load (--import) shares with it. */
export const UNBUNDLED = fileURLToPath(new URL('../../../src/main.js', import.meta.url));

/** The program that was built together with this file. */
const MAIN = fileURLToPath(new URL('../../../baton/main.js', import.meta.url));

async function waitUntilReady(baton: BatonProcess, wait: 'live' | 'admin', deadlineMs: number): Promise<void> {
  const isReady = async () => {
    const { status } = await baton.admin('/ready');
    return wait === 'admin' || status === 200;
  };
  await waitFor(() => baton.exit !== undefined || (baton.hasAdminAddress && isReady()), {
    deadlineMs,
    what: 'Baton to be ready',
  }).catch((error: unknown) => {
    throw new Error(`Baton was not ready; its stderr:\n${baton.stderr}`, { cause: error });
  });
  if (baton.exit !== undefined) {
    throw new Error(`Baton ended before it was ready (status ${baton.exit.code}):\n${baton.stderr}`);
  }
}

/** The environment without what the test runner adds. */
function cleanEnvironment(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !/^_?TAP/.test(name));
  return Object.fromEntries(kept);
}
