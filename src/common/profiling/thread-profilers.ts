// Controls V8's profilers of the current thread through an inspector session; no port is opened.

import { type HeapProfiler, Session } from 'node:inspector/promises';
import { threadMemory } from '../process/thread-memory.js';
import {
  CPU_PERIOD_NS,
  HEAP_PERIOD_BYTES,
  type ProfileCommand,
  type ProfilerKind,
  type ThreadProfile,
} from './profile.js';
import { threadCpuNs } from './thread-cpu.js';
import { allocationsProfile, cpuProfile, heapProfile, heapSums, type SampledHeap } from './v8-profiles.js';

export class ThreadProfilers {
  readonly #thread: string;
  /** One session per running profiler. The heap has one sampler: 'heap' and 'allocations' exclude each other. */
  readonly #sessions = new Map<ProfilerKind, Session>();
  #cpuStartedNs: number | undefined;

  constructor(thread: string) {
    this.#thread = thread;
  }

  /** Runs a command and resolves with the requested profile. Rejects if the command is not possible now. */
  async run(command: ProfileCommand): Promise<ThreadProfile | undefined> {
    switch (command.do) {
      case 'start':
        await this.#start(command.kind);
        return undefined;
      case 'stop':
        return this.#stop(command.kind);
      case 'read-heap':
        return this.#readHeap();
    }
  }

  async #start(kind: ProfilerKind): Promise<void> {
    // A profiler whose start the primary gave up on: its data is discarded.
    if (this.#sessions.has(kind)) await this.#stop(kind);
    const session = new Session();
    session.connect();
    this.#sessions.set(kind, session);
    try {
      await begin(session, kind);
      // Excludes the time that starting the profiler takes.
      if (kind === 'cpu') this.#cpuStartedNs = threadCpuNs();
    } catch (error) {
      this.#sessions.delete(kind);
      session.disconnect();
      throw error;
    }
  }

  async #stop(kind: ProfilerKind): Promise<ThreadProfile> {
    const session = this.#sessions.get(kind);
    if (session === undefined) throw new Error('the thread began after the profiler had been started');
    this.#sessions.delete(kind);
    try {
      if (kind === 'cpu') {
        const cpuNs = (threadCpuNs() ?? 0) - (this.#cpuStartedNs ?? 0);
        return cpuProfile(this.#thread, (await session.post('Profiler.stop')).profile, cpuNs);
      }
      const profile = (await session.post('HeapProfiler.stopSampling')).profile as SampledHeap;
      if (kind === 'allocations') return allocationsProfile(this.#thread, profile);
      return heapProfile(threadMemory(this.#thread), profile);
    } finally {
      session.disconnect();
    }
  }

  async #readHeap(): Promise<ThreadProfile> {
    const session = this.#sessions.get('heap');
    if (session === undefined) return heapSums(threadMemory(this.#thread));
    // V8 collects garbage first: the samples and the heap size include only memory in use.
    const { profile } = await session.post('HeapProfiler.getSamplingProfile');
    return heapProfile(threadMemory(this.#thread), profile as SampledHeap);
  }
}

async function begin(session: Session, kind: ProfilerKind): Promise<void> {
  if (kind !== 'cpu') return session.post('HeapProfiler.startSampling', samplingOf(kind));
  await session.post('Profiler.enable');
  await session.post('Profiler.setSamplingInterval', { interval: CPU_PERIOD_NS / 1000 });
  await session.post('Profiler.start');
}

/** Returns the sampling parameters. V8 has two more of them than Node's types. */
function samplingOf(kind: 'heap' | 'allocations'): HeapProfiler.StartSamplingParameterType {
  const isAll = kind === 'allocations';
  const parameters = {
    samplingInterval: HEAP_PERIOD_BYTES,
    includeObjectsCollectedByMajorGC: isAll,
    includeObjectsCollectedByMinorGC: isAll,
  };
  return parameters;
}
