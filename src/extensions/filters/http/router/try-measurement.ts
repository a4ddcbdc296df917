// Measures the tries of requests to clusters with track_cluster_stats: sizes of messages, and how much of the timeouts they use.

import { requestBytes, STATUS_BYTES } from '../../../../access-log/operators/bytes-operators.js';
import type { HeaderBlock } from '../../../../http/headers/header-block.js';
import { MessageSizeStats, TimeoutBudgetStats } from '../../../../stats/layouts/cluster.js';
import type { ClusterMeasurements } from '../../../../upstream/cluster.js';

/** :method, :path and :scheme; Host is a field. */
const PSEUDO_FIELDS = 3;

export class TryMeasurement {
  readonly #stats: ClusterMeasurements;
  readonly #startMs: number;
  readonly #timeoutMs: number;
  readonly #requestBytes: number;
  readonly #requestFields: number;
  #isCutShort = false;
  #sent = 0;
  /** The size of all heads of the response. */
  #responseBytes = 0;
  #responseFields = 0;
  #received = 0;

  /** Begins a try that will send `headers`. `timeoutMs`: its own; 0: none. */
  constructor(stats: ClusterMeasurements, headers: HeaderBlock, scheme: string, timeoutMs: number, nowMs: number) {
    this.#stats = stats;
    this.#startMs = nowMs;
    this.#timeoutMs = timeoutMs;
    this.#requestBytes = requestBytes(headers, scheme);
    this.#requestFields = headers.fieldCount + PSEUDO_FIELDS;
  }

  /** Called when the timeout of the whole request ends the try: as in Envoy, its own share is not recorded. */
  wholeTimeout(): void {
    this.#isCutShort = true;
  }

  bodySent(bytes: number): void {
    this.#sent += bytes;
  }

  /** Called for each head of the response, before it is changed. */
  responded(headers: HeaderBlock): void {
    this.#responseBytes += headers.fieldBytes + STATUS_BYTES;
    this.#responseFields += headers.fieldCount + 1;
  }

  bodyReceived(bytes: number): void {
    this.#received += bytes;
  }

  /** Records the try. */
  end(nowMs: number): void {
    const { budgets, sizes } = this.#stats;
    if (budgets !== undefined && !this.#isCutShort) {
      const { at } = TimeoutBudgetStats;
      const percent = usedPercent(nowMs - this.#startMs, this.#timeoutMs);
      budgets.record(at.upstream_rq_timeout_budget_per_try_percent_used, percent);
    }
    if (sizes === undefined) return;
    const { at } = MessageSizeStats;
    sizes.record(at.upstream_rq_headers_size, this.#requestBytes);
    sizes.record(at.upstream_rq_headers_count, this.#requestFields);
    sizes.record(at.upstream_rq_body_size, this.#sent);
    if (this.#responseFields === 0) return;
    sizes.record(at.upstream_rs_headers_size, this.#responseBytes);
    sizes.record(at.upstream_rs_headers_count, this.#responseFields);
    sizes.record(at.upstream_rs_body_size, this.#received);
  }
}

/** Records the whole request, from its end to the end of its response or its timeout. */
export function recordBudget(stats: ClusterMeasurements, elapsedMs: number, timeoutMs: number): void {
  const slot = TimeoutBudgetStats.at.upstream_rq_timeout_budget_percent_used;
  stats.budgets?.record(slot, usedPercent(elapsedMs, timeoutMs));
}

/** Returns the used share of a timeout in percent; 0 for an unlimited one. */
function usedPercent(elapsedMs: number, timeoutMs: number): number {
  return timeoutMs === 0 ? 0 : Math.floor((Math.floor(elapsedMs) * 100) / timeoutMs);
}
