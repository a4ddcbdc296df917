// Counters of responses by status code, and a histogram of response times. Each is created at its first response.

import type { DynamicCounter, DynamicHistogram, ThreadStats } from './thread-stats.js';

export class CodeCounters {
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
  #completed: Pick<DynamicCounter, 'increment'> | undefined;
  #time: DynamicHistogram | undefined;

  /**
   * `prefix`: that of a scope; `group`: between it and the names; `completed`: counts responses, if the scope has a counter for them.
   */
  constructor(stats: ThreadStats, prefix: string, group: string, completed?: Pick<DynamicCounter, 'increment'>) {
    this.#completed = completed;
    this.stats = stats;
    this.prefix = prefix;
    this.#group = group;
  }

  /** Counts one response. `isWithoutStatus`: only as completed. */
  count(status: number, isWithoutStatus = false): void {
    (this.#completed ??= this.#counter('upstream_rq_completed')).increment();
    if (isWithoutStatus) return;
    const codeClass = (status / 100) | 0;
    // As in Envoy, statuses from 600 on share one counter and have no class.
    if (codeClass <= 5) (this.#byClass[codeClass] ??= this.#counter(`upstream_rq_${codeClass}xx`)).increment();
    (this.#byCode[status] ??= this.#counter(`upstream_rq_${codeClass <= 5 ? status : 'unknown'}`)).increment();
  }

  record(milliseconds: number): void {
    this.#time ??= this.stats.dynamicHistogram(this.prefix, `${this.#group}upstream_rq_time`);
    this.#time.record(milliseconds);
  }

  #counter(name: string): DynamicCounter {
    return this.stats.dynamicCounter(this.prefix, this.#group + name);
  }
}
