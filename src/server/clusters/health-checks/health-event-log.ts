// The event logs of one version of a cluster's health checks: files, which clusters may share.

import type { HealthCheckSpec } from '../../../upstream/health-checks/health-check-spec.js';
import { type CheckResult, eventText, healthEvents } from '../../../upstream/health-checks/health-event.js';
import type { ResolvedEndpoint } from '../../../upstream/hosts/host.js';
import type { EventFile, EventFiles } from '../event-files.js';

export class HealthEventLog {
  readonly #spec: HealthCheckSpec;
  readonly #cluster: string;
  readonly #files: readonly EventFile[];

  /** Returns undefined if no log is configured. Throws a BatonError when a file cannot be opened. */
  static of(spec: HealthCheckSpec, cluster: string, files: EventFiles): HealthEventLog | undefined {
    if (spec.eventPaths.length === 0) return undefined;
    const opened: EventFile[] = [];
    try {
      for (const path of spec.eventPaths) opened.push(files.open(path));
    } catch (error) {
      for (const file of opened) file.release();
      throw error;
    }
    return new HealthEventLog(spec, cluster, opened);
  }

  private constructor(spec: HealthCheckSpec, cluster: string, files: readonly EventFile[]) {
    this.#spec = spec;
    this.#cluster = cluster;
    this.#files = files;
  }

  /** Writes the events of a check of `host`, if it causes any. */
  write(host: ResolvedEndpoint, result: CheckResult): void {
    for (const event of healthEvents(result, this.#spec)) {
      const text = eventText(event, this.#spec, this.#cluster, host);
      for (const file of this.#files) file.write(text);
    }
  }

  release(): void {
    for (const file of this.#files) file.release();
  }
}
