// Starts the real program as a separate process, waits until it serves, and stops it when the test ends.

import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Config } from './bootstrap.js';
import { endsWithTest, type Teardown, tempDir } from './environment.js';
import { type HttpAnswer, type HttpRequestOptions, httpRequest } from './http-client.js';
import { DEFAULT_DEADLINE_MS, waitFor, withDeadline } from './wait-for.js';

export interface BatonOptions {
  /** A string is written to the file as it is, for what an object cannot express; an object is written as JSON. */
  config?: Config | string;
  /** The program's entry file; by default the one that was built together with this file. */
  program?: string;
  /** Another program with the same command line that runs in place of Baton: the path of a real Envoy. */
  command?: string | undefined;
  /** Name of the configuration file; its extension determines how it is parsed. */
  configName?: string;
  /** Further arguments. `--concurrency 1` and `--disable-hot-restart` are added unless these override them. */
  args?: readonly string[];
  /** Omits these two arguments, for tests of their absence. */
  plain?: boolean;
  /** Added to the environment. */
  env?: Record<string, string>;
  /** Options of the node process itself. */
  nodeArgs?: readonly string[];
  /** A command that executes the program given after it, such as `['sh', '-c', 'ulimit -n 64; exec "$@"', 'sh']`. */
  wrapper?: readonly string[];
  /**
   * 'live' (default) waits until /ready answers 200, 'admin' until the admin interface answers at all, 'spawned' does not wait.
   */
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
  /** A directory for the test's own files; removed when the test ends. */
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
    // Callers that need the result await it; a failed spawn must not end the test process as an unhandled rejection.
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

  /** Whether the program has written the address of its admin interface. */
  get hasAdminAddress(): boolean {
    return existsSync(join(this.directory, ADMIN_ADDRESS_FILE));
  }

  /** The port of the admin interface, from the file that the program has written. */
  get adminPort(): number {
    const address = readFileSync(join(this.directory, ADMIN_ADDRESS_FILE), 'utf8').trim();
    return Number(address.slice(address.lastIndexOf(':') + 1));
  }

  /** Sends one request to the admin interface. */
  admin(path: string, options?: HttpRequestOptions): Promise<HttpAnswer> {
    return httpRequest(this.adminPort, path, options);
  }

  /** Returns the port of a listener from /listeners, so that configurations can use port 0. */
  async listenerPort(name: string): Promise<number> {
    const { body } = await this.admin('/listeners');
    const line = body.split('\n').find((each) => each.startsWith(`${name}::`));
    if (line === undefined) throw new Error(`no listener ${name} in ${JSON.stringify(body)}`);
    return Number(line.slice(line.lastIndexOf(':') + 1));
  }

  /** Returns the port of a listener from the log, for a server without an admin interface or one that is not live yet. */
  async loggedPort(name: string): Promise<number> {
    const line = new RegExp(`listener '${name}' listens on .*:([0-9]+)\\n`);
    const match = await waitFor(() => line.exec(this.#stderr), { what: `listener ${name} in the log` });
    return Number(match[1]);
  }

  /** Returns the counters and gauges whose names begin with `prefix`, keyed by the rest of the name. */
  async stats(prefix = ''): Promise<Record<string, number>> {
    const stats = Object.entries(await this.#numbers(`^${escaped(prefix)}`));
    return Object.fromEntries(stats.map(([name, value]) => [name.slice(prefix.length), value]));
  }

  /** Returns the value of a counter or gauge, or undefined when the stat does not exist. */
  async stat(name: string): Promise<number | undefined> {
    return (await this.#numbers(`^${escaped(name)}$`))[name];
  }

  /** Waits until the stats have these values: they lag behind the traffic. */
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

  /** Sends SIGTERM and expects a clean exit: status 0 before the deadline. */
  async stop(deadlineMs = DEFAULT_DEADLINE_MS): Promise<void> {
    if (this.#exit === undefined) this.child.kill('SIGTERM');
    const exit = await withDeadline(this.exited, 'the exit after SIGTERM', deadlineMs);
    if (exit.code !== 0) {
      throw new Error(`ended with status ${exit.code}, signal ${exit.signal}:\n${this.#stderr}`);
    }
  }

  /** Sends a signal and waits for the exit, whatever its status. */
  kill(signal: NodeJS.Signals = 'SIGKILL', deadlineMs = DEFAULT_DEADLINE_MS): Promise<Exit> {
    if (this.#exit === undefined) this.child.kill(signal);
    return withDeadline(this.exited, `the exit after ${signal}`, deadlineMs);
  }
}

/** Returns a regular expression that matches this text only. */
const escaped = (text: string) => text.replace(/[^\w\u0080-\uffff]/g, '\\$&');

/** Starts Baton, and kills it at the end of the test if it still runs. Throws with its stderr when it exits before it serves. */
export async function startBaton(t: Teardown, options: BatonOptions = {}): Promise<BatonProcess> {
  const { command, config, configName = 'config.yaml', args = [], env = {}, nodeArgs = [], wrapper = [] } = options;
  const { program = MAIN, wait = 'live', deadlineMs = DEFAULT_DEADLINE_MS, plain = false } = options;
  const directory = tempDir(t);
  const configPath = join(directory, configName);
  const all = command === undefined ? [process.execPath, ...nodeArgs, program] : [command];
  if (config !== undefined) {
    // JSON is YAML, so one serializer covers both extensions.
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

/** The program as separate modules: a module loaded with --import shares module instances with it. */
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

/** Returns the environment without the variables of the test runner. */
function cleanEnvironment(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !/^_?TAP/.test(name));
  return Object.fromEntries(kept);
}
