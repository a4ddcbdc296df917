// The profilers of all threads: started and ended together, one command after the other, each with a deadline.

import type { ProfilersView, StartOfProfiler } from '../../admin/admin-services.js';
import { BatonError } from '../../common/errors/errors.js';
import type { ThreadMemory } from '../../common/process/thread-memory.js';
import type { ProfileSet } from '../../common/profiling/pprof.js';
import type { ProfileCommand, ProfileReply, ProfilerKind } from '../../common/profiling/profile.js';
import { atMostMs } from '../../common/time/within-ms.js';
import { getLogger } from '../../log/logger.js';
import { PeakHeap } from './peak-heap.js';
import type { ProfileFile } from './profile-file.js';

/** The threads, as they are asked for profiles. */
export interface ProfiledServer {
  /** Every thread's answer; one that cannot give any is an error. */
  profile(command: ProfileCommand): Promise<ProfileReply[]>;
  memory(): Promise<readonly ThreadMemory[]>;
}

interface Run {
  readonly startedMs: number;
  /** Ends what would take more memory the longer it runs. */
  readonly timer: NodeJS.Timeout;
  readonly writesFile: boolean;
}

const logger = getLogger('main');

const NAMES: { readonly [K in ProfilerKind]: string } = {
  cpu: 'CPU profiler',
  heap: 'heap profiler',
  allocations: 'allocation profiler',
};
/** V8 has one sampler of a heap. */
const EXCLUDED: { readonly [K in ProfilerKind]?: ProfilerKind } = { heap: 'allocations', allocations: 'heap' };
/** Samples of the processor and of what was collected are kept until the end. */
const LONGEST_RUN_MS = 10 * 60_000;
/** How often the heap profiler looks for a peak. */
const LOOK_MS = 1000;
/** How long the end of the server waits for profiles to be written. */
const CLOSE_MS = 5000;

export class Profilers implements ProfilersView {
  readonly #server: ProfiledServer;
  readonly #file: ProfileFile;
  readonly #render: (set: ProfileSet) => Promise<AsyncIterable<Uint8Array>>;
  readonly #running = new Map<ProfilerKind, Run>();
  #peak = new PeakHeap();
  #isLooking = false;
  #turn: Promise<unknown> = Promise.resolve();

  /** `render` makes the bytes of a profile. */
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

  start(kind: ProfilerKind): Promise<StartOfProfiler> {
    return this.#inTurn(() => this.#start(kind));
  }

  // Bytes are made out of turn: when that fails, or takes for ever, it is the matter of the one who has asked.

  async stop(kind: ProfilerKind): Promise<Uint8Array | undefined> {
    const ended = await this.#inTurn(() => this.#stop(kind));
    if (ended === undefined) return undefined;
    const profile = await wholeOf(await this.#render(ended.set));
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
      // Now may be the peak.
      if (this.#running.has('heap')) await this.#readHeap();
      return this.#peak.largest;
    });
    return largest && this.#render(largest);
  }

  /** Ends what runs and writes it, in bounded time. */
  async close(): Promise<void> {
    if (this.#running.size === 0) return;
    await atMostMs(Promise.all([...this.#running.keys()].map((kind) => this.#end(kind))), CLOSE_MS);
  }

  async #start(kind: ProfilerKind): Promise<StartOfProfiler> {
    const excluded = EXCLUDED[kind];
    if (this.#running.has(kind)) return { isStarted: false, isFailure: false, why: 'already started' };
    if (excluded !== undefined && this.#running.has(excluded)) {
      return { isStarted: false, isFailure: false, why: `the ${NAMES[excluded]} is running` };
    }
    let writesFile = true;
    try {
      await this.#file.check();
    } catch (error) {
      // Its profile is the answer: who has configured no file need not have one.
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
    if (kind === 'heap') return setInterval(() => void this.#look(), LOOK_MS).unref();
    return setTimeout(() => {
      logger.warning(`the ${NAMES[kind]} has run for ${LONGEST_RUN_MS / 60_000} minutes and is ended`);
      void this.#end(kind);
    }, LONGEST_RUN_MS).unref();
  }

  /** Keeps the heaps' state when they have reached a new high. */
  async #look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      if (!this.#peak.isHigh(await this.#server.memory())) return;
      await this.#inTurn(async () => {
        if (this.#running.has('heap')) await this.#readHeap();
      });
    } catch (error) {
      logger.error({ err: error }, 'the peak of the heaps cannot be looked for');
    } finally {
      this.#isLooking = false;
    }
  }

  /** Ends a profiler for which nobody waits. */
  async #end(kind: ProfilerKind): Promise<void> {
    try {
      await this.stop(kind);
    } catch (error) {
      logger.error(`the profile of the ${NAMES[kind]} is lost: ${describe(error)}`);
    }
  }

  /** What is asked while something is under way waits for its end. */
  #inTurn<T>(action: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(action);
    this.#turn = done.catch(() => {});
    return done;
  }
}

const NOT_SAMPLED = 'the heap is not sampled: POST /heapprofiler?enable=y begins to note who allocates what';

function describe(error: unknown): string {
  return error instanceof BatonError ? error.describe() : String(error);
}

async function wholeOf(pieces: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const all: Uint8Array[] = [];
  for await (const piece of pieces) all.push(piece);
  return Buffer.concat(all);
}
