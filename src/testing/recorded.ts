// What a tested filter finds around it: stats, log and failures are recorded, and clusters are functions of the test.

import type { FetchInit, FetchResponse, Log, RuntimeValues, Stats } from '../api/index.js';
import type { FilterTest, FilterTestResult } from '../api/testing.js';
import type { SharedByRequests } from '../extensions/filters/http/script/shared.js';
import { ModuleStats } from '../extensions/script/module-stats.js';
import { RESERVED_NAMES } from '../extensions/script/stats.js';
import type { Memory } from '../io/memory.js';
import type { Timer, Timers } from '../io/time/timing-wheel.js';
import type { ThreadStats } from '../stats/thread-stats.js';
import { bytesOfPiece, piecesOf, Received } from './messages.js';

const DEFAULT_TIMEOUT_MS = 5000;

export class Recorded implements SharedByRequests {
  readonly memory: Memory;
  readonly timeoutMs: number;
  readonly failsOpen: boolean;
  readonly timers: Timers = new NodeTimers();
  readonly moduleStats: Stats;
  readonly log: Log;
  readonly runtime: RuntimeValues;
  readonly stats = { increment: () => {} };
  readonly faults = {
    report: (hook: string, thrown: unknown) => void this.failures.push({ hook, thrown }),
  };
  readonly failures: { hook: string; thrown: unknown }[] = [];
  readonly lines: FilterTestResult['log'][number][] = [];
  readonly values = {
    counters: {} as Record<string, number>,
    gauges: {} as Record<string, number>,
    histograms: {} as Record<string, number[]>,
  };
  readonly #clusters: FilterTest['clusters'];

  constructor(test: FilterTest, memory: Memory) {
    this.memory = memory;
    this.timeoutMs = test.timeoutMs ?? DEFAULT_TIMEOUT_MS;
    this.failsOpen = test.failurePolicy === 'OPEN';
    this.#clusters = test.clusters;
    this.log = logTo(this.lines);
    this.runtime = runtimeOf(test.runtime ?? {});
    this.moduleStats = new ModuleStats(statsTo(this.values), '', RESERVED_NAMES);
  }

  findCluster(name: string): { readonly name: string } | undefined {
    return this.#clusters === undefined || Object.hasOwn(this.#clusters, name) ? { name } : undefined;
  }

  newCalls() {
    return {
      fetch: (cluster: string, path: string, init: FetchInit) => this.#fetch(cluster, path, init),
      cancel: () => {},
    };
  }

  async #fetch(cluster: string, path: string, init: FetchInit): Promise<FetchResponse> {
    const { body, headers = {}, method, timeoutMs = DEFAULT_TIMEOUT_MS } = init;
    const answer = this.#clusters?.[cluster];
    if (answer === undefined) throw new Error(`fetch: there is no cluster '${cluster}': add it to the test's clusters`);
    const received = new Received();
    if (body !== undefined) received.data(bytesOfPiece(body));
    const lower = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
    const request = {
      ...received.message,
      headers: lower,
      fields: Object.entries(lower),
      method: method ?? (body === undefined ? 'GET' : 'POST'),
      path,
      host: lower['host'] ?? cluster,
      cluster,
    };
    const response = await inTime(answer(request), timeoutMs, `fetch from '${cluster}': it does not answer in time`);
    const bytes = Buffer.concat(piecesOf(response));
    const { status = 200 } = response;
    return {
      status,
      ok: status >= 200 && status < 300,
      headers: new Map(
        Object.entries(response.headers ?? {}).map(([name, value]) => [
          name.toLowerCase(),
          typeof value === 'string' ? value : value.join(', '),
        ]),
      ),
      bytes: () => bytes,
      text: () => bytes.toString(),
      json: () => JSON.parse(bytes.toString()),
    };
  }
}

/** Node's timers, so that those of a test framework's clock can take their place. */
class NodeTimers implements Timers {
  readonly #running = new Map<Timer, NodeJS.Timeout>();

  reschedule(timer: Timer, delayMs: number): void {
    this.cancel(timer);
    const fire = () => {
      this.#running.delete(timer);
      timer.onTimer(timer.owner);
    };
    this.#running.set(timer, setTimeout(fire, delayMs));
  }

  cancel(timer: Timer): void {
    clearTimeout(this.#running.get(timer));
    this.#running.delete(timer);
  }
}

function logTo(lines: FilterTestResult['log'][number][]): Log {
  return {
    debug: (text) => void lines.push({ level: 'debug', text }),
    info: (text) => void lines.push({ level: 'info', text }),
    warn: (text) => void lines.push({ level: 'warn', text }),
    error: (text) => void lines.push({ level: 'error', text }),
  };
}

function runtimeOf(values: Readonly<Record<string, unknown>>): RuntimeValues {
  const get = <T>(key: string, type: string, otherwise: T): T => {
    const value = Object.hasOwn(values, key) ? values[key] : undefined;
    return typeof value === type ? (value as T) : otherwise;
  };
  return {
    number: (key, otherwise) => get(key, 'number', otherwise),
    string: (key, otherwise) => get(key, 'string', otherwise),
    boolean: (key, otherwise) => get(key, 'boolean', otherwise),
  };
}

/** Returns stats whose values are written to `values`. */
function statsTo({ counters, gauges, histograms }: Recorded['values']): ThreadStats {
  const kinds = {
    dynamicCounter: (_prefix: string, name: string) => ({
      add: (n: number) => {
        counters[name] = (counters[name] ?? 0) + n;
      },
    }),
    dynamicGauge: (_prefix: string, name: string) => ({
      set: (value: number) => {
        gauges[name] = value;
      },
    }),
    dynamicHistogram: (_prefix: string, name: string) => ({
      record: (value: number) => {
        (histograms[name] ??= []).push(value);
      },
    }),
  };
  return kinds as unknown as ThreadStats;
}

async function inTime<T>(value: T | Promise<T>, ms: number, why: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(why)), ms);
  });
  return Promise.race([value, late]).finally(() => clearTimeout(timer));
}
