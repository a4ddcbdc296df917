// The profile of one thread, and the messages about profiles between the primary and a thread. All are plain data.

/** What is profiled: processor time, heap memory in use, or all allocations, including collected ones. */
export type ProfilerKind = 'cpu' | 'heap' | 'allocations';

/** Time between two processor samples. */
export const CPU_PERIOD_NS = 5_000_000;
/** Average number of bytes allocated between two heap samples. */
export const HEAP_PERIOD_BYTES = 65_536;

/** A function as V8 names it. */
export interface ProfiledFunction {
  /** `(anonymous)` for a function without a name. V8's own names are in parentheses: `(garbage collector)`. */
  readonly name: string;
  /** Relative to the package for its own files: `src/http/routing/tables/route-table.ts`. '' for code without a source. */
  readonly file: string;
  /** First line, from 1; 0 if unknown. */
  readonly line: number;
}

/** A call of a function from another call. */
export interface ProfiledCall {
  /** Index of the caller, which precedes this call in the list; -1 for the first call of a thread. */
  readonly caller: number;
  readonly function: ProfiledFunction;
}

/** The samples of one place. */
export interface ProfiledSample {
  /** Index in the list of calls. */
  readonly call: number;
  /** The executed line; the function's first line if unknown. */
  readonly line: number;
  /** Number of samples taken there; 0 for a total of the thread. */
  readonly count: number;
  /** Nanoseconds or bytes. */
  readonly value: number;
}

export interface ThreadProfile {
  /** `primary`, `worker_0`, … */
  readonly thread: string;
  readonly calls: readonly ProfiledCall[];
  readonly samples: readonly ProfiledSample[];
}

/** A command from the primary to a thread. */
export type ProfileCommand =
  | { readonly do: 'start'; readonly kind: ProfilerKind }
  /** The reply contains the profile. */
  | { readonly do: 'stop'; readonly kind: ProfilerKind }
  /** The reply contains the heap memory in use, with the places that allocated it since the profiler started. */
  | { readonly do: 'read-heap' };

export interface ProfileReply {
  readonly thread: string;
  readonly profile?: ThreadProfile;
  /** Why the command failed. */
  readonly error?: string;
}

/** Returns the sum of the samples' values. */
export function totalOf({ samples }: ThreadProfile): number {
  return samples.reduce((sum, { value }) => sum + value, 0);
}
