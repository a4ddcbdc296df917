// What a profile of one thread is, and what the primary and a thread say to each other about profiles. All of it is plain data.

/** What is profiled: time on the processor, what of the heap is in use, or all that was allocated, collected or not. */
export type ProfilerKind = 'cpu' | 'heap' | 'allocations';

/** The time between two samples of the processor. */
export const CPU_PERIOD_NS = 5_000_000;
/** Bytes allocated between two samples of the heap, on average. */
export const HEAP_PERIOD_BYTES = 65_536;

/** A function, as V8 names it. */
export interface ProfiledFunction {
  /** `(anonymous)` for one without a name; names of V8's own in parentheses: `(garbage collector)`. */
  readonly name: string;
  /** Relative to the package for its own files: `src/http/routing/tables/route-table.ts`. '' for what has no source. */
  readonly file: string;
  /** Where it begins; from 1, 0 when unknown. */
  readonly line: number;
}

/** One call: of a function, from another call. */
export interface ProfiledCall {
  /** Index of the caller in the list of calls, which precedes it; -1 for the first of a thread. */
  readonly caller: number;
  readonly function: ProfiledFunction;
}

/** What was found at one place. */
export interface ProfiledSample {
  /** Index in the list of calls. */
  readonly call: number;
  /** The line that was executed; that of the function when it is not known. */
  readonly line: number;
  /** Samples that were taken there; 0 for what is no sample: a sum that the thread knows as a whole. */
  readonly count: number;
  /** Nanoseconds, or bytes. */
  readonly value: number;
}

export interface ThreadProfile {
  /** `primary`, `worker_0`, … */
  readonly thread: string;
  readonly calls: readonly ProfiledCall[];
  readonly samples: readonly ProfiledSample[];
}

/** What a thread is told. */
export type ProfileCommand =
  | { readonly do: 'start'; readonly kind: ProfilerKind }
  /** The answer has the profile. */
  | { readonly do: 'stop'; readonly kind: ProfilerKind }
  /** The answer has what is in use of the heap: with the places where it was allocated, as far as the profiler runs. */
  | { readonly do: 'read-heap' };

export interface ProfileReply {
  readonly thread: string;
  readonly profile?: ThreadProfile;
  /** Why the thread could not obey. */
  readonly error?: string;
}

/** The sum of its values. */
export function totalOf({ samples }: ThreadProfile): number {
  return samples.reduce((sum, { value }) => sum + value, 0);
}
