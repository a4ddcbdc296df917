// The profilers of all threads. They start and end together; commands run one after the other, each with a deadline.

import type { ProfilerStart, ProfilersView } from '../../admin/admin-services.js';
import { BatonError } from '../../common/errors/errors.js';
import type { ThreadMemory } from '../../common/process/thread-memory.js';
import type { ProfileSet } from '../../common/profiling/pprof.js';
import type { ProfileCommand, ProfileReply, ProfilerKind } from '../../common/profiling/profile.js';
import { atMostMs } from '../../common/time/within-ms.js';
import { getLogger } from '../../log/logger.js';
import { PeakHeap } from './peak-heap.js';
import type { ProfileFile } from './profile-file.js';

/** The threads as sources of profiles. */
export interface ProfiledServer {
  /** Returns every thread's reply. A thread that cannot answer has an error. */
  profile(command: ProfileCommand): Promise<ProfileReply[]>;
  memory(): Promise<readonly ThreadMemory[]>;
}

interface Run {
  readonly startedMs: number;
  /** Ends a run whose memory grows with time, or checks for a peak. */
  readonly timer: NodeJS.Timeout;
  readonly writesFile: boolean;
}

const logger = getLogger('main');

const NAMES: { readonly [K in ProfilerKind]: string } = {
  cpu: 'CPU profiler',
  heap: 'heap profiler',
  allocations: 'allocation profiler',
};
/** Profilers that share V8's single heap sampler. */
const EXCLUDED: { readonly [K in ProfilerKind]?: ProfilerKind } = { heap: 'allocations', allocations: 'heap' };
/** CPU samples, and samples of collected objects, are held in memory until the end. */
const MAX_RUN_MS = 10 * 60_000;
/** Interval at which the heap profiler checks for a peak. */
const PEAK_CHECK_MS = 1000;
/** Limit for writing the profiles when the server ends. */
const CLOSE_MS = 5000;

export class Profilers implements ProfilersView {
  readonly #server: ProfiledServer;
  readonly #file: ProfileFile;
  readonly #render: (set: ProfileSet) => Promise<AsyncIterable<Uint8Array>>;
  readonly #running = new Map<ProfilerKind, Run>();
  #peak = new PeakHeap();
  #isCheckingPeak = false;
  #turn: Promise<unknown> = Promise.resolve();

  /** `render` returns the bytes of a profile. */
  constructor(
    server: ProfiledServer,
    file: ProfileFile,
    render: (set: ProfileSet) => Promise<AsyncIterable<Uint8Array>>,
  ) {
    this.#server = server;
    this.#file = file;
    this.#render = render;
  }

  get path(): string {
    return this.#file.path;
  }

  start(kind: ProfilerKind): Promise<ProfilerStart> {
    return this.#inTurn(() => this.#start(kind));
  }

  // Rendering is outside #inTurn(): when it fails or never ends, only its own request is affected.

  async stop(kind: ProfilerKind): Promise<Uint8Array | undefined> {
    const ended = await this.#inTurn(() => this.#stop(kind));
    if (ended === undefined) return undefined;
    const profile = await concatenated(await this.#render(ended.set));
    if (ended.writesFile) {
      await this.#inTurn(() => this.#file.write(profile));
      logger.info(`the ${NAMES[kind]} has written ${this.path}`);
    }
    return profile;
  }

  async heap(): Promise<AsyncIterable<Uint8Array>> {
    return this.#render(await this.#inTurn(() => this.#readHeap()));
  }

  async peakHeap(): Promise<AsyncIterable<Uint8Array> | undefined> {
    const largest = await this.#inTurn(async () => {
      // The heap may be at its peak now.
      if (this.#running.has('heap')) await this.#readHeap();
      return this.#peak.largest;
    });
    return largest && this.#render(largest);
  }

  /** Ends the running profilers and writes their profiles, in bounded time. */
  async close(): Promise<void> {
    if (this.#running.size === 0) return;
    await atMostMs(Promise.all([...this.#running.keys()].map((kind) => this.#end(kind))), CLOSE_MS);
  }

  async #start(kind: ProfilerKind): Promise<ProfilerStart> {
    const excluded = EXCLUDED[kind];
    if (this.#running.has(kind)) return { isStarted: false, isFailure: false, why: 'already started' };
    if (excluded !== undefined && this.#running.has(excluded)) {
      return { isStarted: false, isFailure: false, why: `the ${NAMES[excluded]} is running` };
    }
    let writesFile = true;
    try {
      await this.#file.check();
    } catch (error) {
      // An allocation profile is the answer itself: without a configured path it needs no file.
      writesFile = false;
      if (kind !== 'allocations' || this.#file.isConfigured) {
        return { isStarted: false, isFailure: true, why: describe(error) };
      }
    }
    const replies = await this.#server.profile({ do: 'start', kind });
    for (const { thread, error } of replies) {
      if (error !== undefined) logger.warning(`the ${NAMES[kind]} does not run in ${thread}: ${error}`);
    }
    this.#running.set(kind, { startedMs: performance.now(), timer: this.#timer(kind), writesFile });
    if (kind === 'heap') this.#peak = new PeakHeap();
    return { isStarted: true };
  }

  async #stop(kind: ProfilerKind): Promise<{ set: ProfileSet; writesFile: boolean } | undefined> {
    const run = this.#running.get(kind);
    if (run === undefined) return undefined;
    this.#running.delete(kind);
    clearInterval(run.timer);
    const set = this.#setOf(kind, await this.#server.profile({ do: 'stop', kind }), performance.now() - run.startedMs);
    if (kind === 'heap') this.#peak.offer(set);
    return { set, writesFile: run.writesFile };
  }

  async #readHeap(): Promise<ProfileSet> {
    const isSampled = this.#running.has('heap');
    const set = this.#setOf('heap', await this.#server.profile({ do: 'read-heap' }), 0);
    if (!isSampled) return { ...set, comments: [...set.comments, NOT_SAMPLED] };
    this.#peak.offer(set);
    return set;
  }

  #setOf(kind: ProfilerKind, replies: readonly ProfileReply[], durationMs: number): ProfileSet {
    const comments: string[] = [];
    for (const { thread, error } of replies) {
      if (error === undefined) continue;
      comments.push(`${thread} is left out: ${error}`);
      logger.warning(`${thread} is left out of the profile of the ${NAMES[kind]}: ${error}`);
    }
    const threads = replies.flatMap(({ profile }) => profile ?? []);
    return { kind, threads, timeMs: Date.now(), durationMs, comments };
  }

  #timer(kind: ProfilerKind): NodeJS.Timeout {
    if (kind === 'heap') return setInterval(() => void this.#checkPeak(), PEAK_CHECK_MS).unref();
    return setTimeout(() => {
      logger.warning(`the ${NAMES[kind]} has run for ${MAX_RUN_MS / 60_000} minutes and is ended`);
      void this.#end(kind);
    }, MAX_RUN_MS).unref();
  }

  /** Keeps the state of the heaps if they have reached a new maximum. */
  async #checkPeak(): Promise<void> {
    if (this.#isCheckingPeak) return;
    this.#isCheckingPeak = true;
    try {
      if (!this.#peak.isHigh(await this.#server.memory())) return;
      await this.#inTurn(async () => {
        if (this.#running.has('heap')) await this.#readHeap();
      });
    } catch (error) {
      logger.error({ err: error }, 'the peak of the heaps cannot be checked');
    } finally {
      this.#isCheckingPeak = false;
    }
  }

  /** Ends a profiler without a request that waits for its profile. */
  async #end(kind: ProfilerKind): Promise<void> {
    try {
      await this.stop(kind);
    } catch (error) {
      logger.error(`the profile of the ${NAMES[kind]} is lost: ${describe(error)}`);
    }
  }

  /** Runs actions one after the other. */
  #inTurn<T>(action: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(action);
    this.#turn = done.catch(() => {});
    return done;
  }
}

const NOT_SAMPLED = 'the heap is not sampled: POST /heapprofiler?enable=y starts to record allocation sites';

function describe(error: unknown): string {
  return error instanceof BatonError ? error.describe() : String(error);
}

async function concatenated(pieces: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const all: Uint8Array[] = [];
  for await (const piece of pieces) all.push(piece);
  return Buffer.concat(all);
}
