// enable_command_stats: stats of the commands that hosts get, `cluster.<name>.redis_cluster.upstream_commands.`.

import type { Cluster, DynamicCounter, DynamicHistogram } from '../../../../sdk.js';

const PREFIX = 'redis_cluster.upstream_commands.';

export class CommandCounts {
  readonly #total: DynamicCounter;
  readonly #success: DynamicCounter;
  readonly #failure: DynamicCounter;
  readonly #latency: DynamicHistogram;

  constructor(cluster: Cluster, command: string) {
    const counter = (name: string) => cluster.counter(`${PREFIX}${command}.${name}`);
    this.#total = counter('total');
    this.#success = counter('success');
    this.#failure = counter('failure');
    this.#latency = cluster.histogram(`${PREFIX}${command}.latency`);
  }

  began(): void {
    this.#total.increment();
  }

  ended(isSuccess: boolean, ms: number): void {
    (isSuccess ? this.#success : this.#failure).increment();
    // Microseconds, as in Envoy.
    this.#latency.record(Math.round(ms * 1000));
  }
}

/** The counts of a cluster's commands, created with the first of each. */
export class ClusterCommandCounts {
  readonly #cluster: Cluster;
  readonly #counts = new Map<string, CommandCounts>();

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  of(command: string): CommandCounts {
    let counts = this.#counts.get(command);
    if (counts === undefined) this.#counts.set(command, (counts = new CommandCounts(this.#cluster, command)));
    return counts;
  }
}
