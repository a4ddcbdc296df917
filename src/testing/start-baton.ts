// startBaton(): a Baton with modules in TypeScript, as a process of its own.

import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BatonTest, RunningBaton, TestContext } from '../api/testing.js';
import { packagePath } from '../common/package/package-root.js';
import { bootstrapOf } from './bootstrap.js';
import { Servers } from './servers.js';

/** From the start of the process to its first answer; on a busy machine it takes seconds. */
const START_MS = 30_000;
const STOP_MS = 5000;
const WAIT_MS = 5000;
const POLL_MS = 10;

/** See src/api/testing.ts. */
export async function startBaton(test: BatonTest, t?: TestContext): Promise<RunningBaton> {
  const servers = new Servers();
  const directory = mkdtempSync(join(tmpdir(), 'baton-test-'));
  const baton = new TestedBaton(servers, directory);
  try {
    await baton.start(await bootstrapOf(test, servers), test.args ?? []);
  } catch (error) {
    await baton.stop();
    throw error;
  }
  t?.after(() => baton.stop());
  return baton;
}

class TestedBaton implements RunningBaton {
  port = 0;
  adminUrl = '';
  log = '';
  readonly #servers: Servers;
  readonly #directory: string;
  #child: ChildProcess | undefined;
  #exit: Promise<void> = Promise.resolve();
  #isRunning = false;

  constructor(servers: Servers, directory: string) {
    this.#servers = servers;
    this.#directory = directory;
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async start(bootstrap: object, args: readonly string[]): Promise<void> {
    const config = join(this.#directory, 'baton.yaml');
    const address = join(this.#directory, 'admin-address');
    writeFileSync(config, JSON.stringify(bootstrap));
    const own = ['-c', config, '--admin-address-path', address, '--disable-hot-restart', '--concurrency', '1'];
    this.#spawn([packagePath('dist/baton/main.js'), ...own, ...args]);
    const isServing = async () => {
      if (!this.#isRunning) throw new Error(`Baton has ended:\n${this.log}`);
      if (!existsSync(address)) return false;
      this.adminUrl = `http://${readFileSync(address, 'utf8').trim()}`;
      return (await fetch(`${this.adminUrl}/ready`)).ok;
    };
    await this.waitFor(isServing, START_MS);
    this.port = await this.#firstPort();
  }

  #spawn(args: readonly string[]): void {
    // node --test talks to its children by this variable.
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    const onOutput = (text: string) => {
      this.log += text;
    };
    child.stdout.setEncoding('utf8').on('data', onOutput);
    child.stderr.setEncoding('utf8').on('data', onOutput);
    this.#child = child;
    this.#isRunning = true;
    this.#exit = new Promise((resolve) => {
      const ended = () => {
        this.#isRunning = false;
        resolve();
      };
      child.once('error', (error) => {
        this.log += `${error.message}\n`;
        ended();
      });
      child.once('close', ended);
    });
  }

  async #firstPort(): Promise<number> {
    const listeners = await (await fetch(`${this.adminUrl}/listeners`)).text();
    const [, port] = /:(\d+)$/m.exec(listeners) ?? [];
    if (port === undefined) throw new Error('the configuration has no listener');
    return Number(port);
  }

  fetch(path: string, init?: RequestInit): Promise<Response> {
    return fetch(`${this.url}${path}`, init);
  }

  async stats(): Promise<Record<string, number>> {
    const text = await (await fetch(`${this.adminUrl}/stats`)).text();
    const values = [...text.matchAll(/^(.+): (\d+)$/gm)].map(([, name, value]) => [name!, Number(value)]);
    return Object.fromEntries(values);
  }

  async waitFor<T>(condition: () => T | Promise<T>, ms = WAIT_MS): Promise<T> {
    const deadline = performance.now() + ms;
    for (;;) {
      const result = await condition();
      if (result !== false && result !== undefined) return result;
      if (performance.now() > deadline)
        throw new Error(`the condition did not hold within ${ms} ms: ${condition}\nBaton has logged:\n${this.log}`);
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  async stop(): Promise<void> {
    this.#child?.kill('SIGTERM');
    const late = setTimeout(() => this.#child?.kill('SIGKILL'), STOP_MS);
    await this.#exit;
    clearTimeout(late);
    await this.#servers.close();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
