// Baton under baton-restarter, with clients whose failures can be attributed to a process.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort, type Teardown, tempDir, waitFor } from '../harness/index.js';
import { startEcho, type TrackedPorts, trackedConfig, waitForText } from '../restart/tracked-load.js';
import { startWrapper, type Wrapper } from './wrapper.js';

const MAIN = fileURLToPath(new URL('../../../baton/main.js', import.meta.url));

/** So long that old processes do not exit during a test. */
const TIMES = '--drain-time-s 60 --parent-shutdown-time-s 60';

/** What an old process logs at the moments when it or the new one may be killed. */
export const MOMENTS = {
  starts: 'a child process of epoch',
  'takes over': 'shutting down admin due to child startup',
  drains: 'draining all listeners for',
} as const;

let lines = 0;

export class TrackedLine {
  readonly wrapper: Wrapper;
  readonly ports: TrackedPorts;
  readonly #deadlineMs: number | undefined;

  private constructor(wrapper: Wrapper, ports: TrackedPorts, deadlineMs: number | undefined) {
    this.wrapper = wrapper;
    this.ports = ports;
    this.#deadlineMs = deadlineMs;
  }

  /** Starts Baton with further arguments under the wrapper, and waits until it is live. */
  static async start(t: Teardown, args: string, deadlineMs?: number): Promise<TrackedLine> {
    const ports: TrackedPorts = { http: await freePort(), tcp: await freePort() };
    const configPath = join(tempDir(t), 'config.yaml');
    writeFileSync(configPath, JSON.stringify(trackedConfig(ports, await startEcho(t))));
    const socket = `@baton-test-${process.pid}-tracked-${lines++}`;
    const script = `exec "$@" --restart-epoch "$RESTART_EPOCH" --socket-path ${socket} --concurrency 2 ${TIMES} ${args}`;
    const wrapper = await startWrapper(t, {
      command: ['sh', '-c', script, 'sh', process.execPath, MAIN, '-c', configPath],
    });
    const line = new TrackedLine(wrapper, ports, deadlineMs);
    await line.live(0);
    return line;
  }

  /** Returns the pid of the newest process of an epoch. */
  pidOf(epoch: number): number {
    return Number(
      [...this.wrapper.stdout.matchAll(new RegExp(`epoch ${epoch} started \\(pid (\\d+)\\)`, 'g'))].at(-1)![1],
    );
  }

  /** Returns how often the wrapper has logged a text. */
  count(text: string): number {
    return this.wrapper.stdout.split(text).length - 1;
  }

  /** Requests the next epoch, and waits until the serving process logs the moment. */
  async next(moment: keyof typeof MOMENTS): Promise<void> {
    const logged = waitForText(this.wrapper.process.stderr!, MOMENTS[moment], this.#deadlineMs);
    this.wrapper.kill('SIGHUP');
    await logged;
  }

  /** Waits until an epoch that was started at least `times` times is live. */
  async live(epoch: number, times = 1): Promise<void> {
    const started = `epoch ${epoch} started`;
    const isLive = () => {
      const { stdout } = this.wrapper;
      return this.count(started) >= times && stdout.lastIndexOf(`epoch ${epoch} is live`) > stdout.lastIndexOf(started);
    };
    await waitFor(isLive, { what: `epoch ${epoch} to be live`, deadlineMs: this.#deadlineMs }).catch(
      (error: unknown) => {
        throw new Error(`${this.wrapper.stdout}${this.wrapper.stderr.slice(-4000)}`, { cause: error });
      },
    );
  }
}
