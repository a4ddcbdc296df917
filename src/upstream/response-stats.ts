// What a cluster counts of its responses by status code: names that only exist once traffic has brought them.
//
// Every response counts under cluster.<name>. and again under cluster.<name>.internal. or .external., by where the
// request came from.

import type { DynamicCounter, DynamicHistogram, ThreadStats } from '../stats/thread-stats.js';

export class ResponseStats {
  readonly #all: CodeCounters;
  readonly #internal: CodeCounters;
  readonly #external: CodeCounters;
  #retried: CodeCounters | undefined;

  /** `prefix`: `cluster.<name>.` */
  constructor(stats: ThreadStats, prefix: string) {
    this.#all = new CodeCounters(stats, prefix, '');
    this.#internal = new CodeCounters(stats, prefix, 'internal.');
    this.#external = new CodeCounters(stats, prefix, 'external.');
  }

  /** Counts one response. */
  countResponse(status: number, isInternal: boolean): void {
    this.#all.count(status);
    (isInternal ? this.#internal : this.#external).count(status);
  }

  /** Records how long a response has taken from the end of its request. */
  recordTime(milliseconds: number, isInternal: boolean): void {
    this.#all.record(milliseconds);
    (isInternal ? this.#internal : this.#external).record(milliseconds);
  }

  /** Counts the status of a response that was thrown away because the request is tried again. */
  countRetried(status: number): void {
    (this.#retried ??= new CodeCounters(this.#all.stats, this.#all.prefix, 'retry.')).count(status);
  }
}

/** Counters of one group; each is made at its first response. */
class CodeCounters {
  readonly stats: ThreadStats;
  readonly prefix: string;
  readonly #group: string;
  readonly #byCode: (DynamicCounter | undefined)[] = [];
  readonly #byClass: (DynamicCounter | undefined)[] = [
    undefined,
    undefined,
    undefined,
    undefined,
    undefined,
    undefined,
  ];
  #completed: DynamicCounter | undefined;
  #time: DynamicHistogram | undefined;

  constructor(stats: ThreadStats, prefix: string, group: string) {
    this.stats = stats;
    this.prefix = prefix;
    this.#group = group;
  }

  count(status: number): void {
    (this.#completed ??= this.#counter('upstream_rq_completed')).increment();
    const codeClass = (status / 100) | 0;
    if (codeClass >= 1 && codeClass <= 5)
      (this.#byClass[codeClass] ??= this.#counter(`upstream_rq_${codeClass}xx`)).increment();
    (this.#byCode[status] ??= this.#counter(`upstream_rq_${status}`)).increment();
  }

  record(milliseconds: number): void {
    this.#time ??= this.stats.dynamicHistogram(this.prefix, `${this.#group}upstream_rq_time`);
    this.#time.record(milliseconds);
  }

  #counter(name: string): DynamicCounter {
    return this.stats.dynamicCounter(this.prefix, this.#group + name);
  }
}
