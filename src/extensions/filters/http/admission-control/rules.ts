// A compiled AdmissionControl: which responses are successes, and how many requests are rejected for a share of failures.

import type { AdmissionControl } from '../../../../config/generated/api.js';
import { BatonError, durationMs, type Runtime, type RuntimeDouble, type RuntimeFlag } from '../../../sdk.js';

const DEFAULT_WINDOW_MS = 30_000;
const DEFAULT_THRESHOLD = 95;
const DEFAULT_MAX_PROBABILITY = 80;
/** Thresholds below this are refused at load and never apply. */
const MIN_THRESHOLD = 1;
const DEFAULT_HTTP_RANGES = [{ start: 100, end: 500 }];
/** Codes for which the client, not the server, is responsible. */
const DEFAULT_GRPC = [0, 1, 2, 3, 5, 6, 7, 9, 11, 12, 16];
const LAST_GRPC = 16;

export class AdmissionRules {
  readonly windowMs: number;
  readonly #enabled: RuntimeFlag;
  readonly #ranges: readonly { readonly start: number; readonly end: number }[];
  readonly #grpc: ReadonlySet<number>;
  readonly #aggression: RuntimeDouble;
  readonly #threshold: RuntimeDouble;
  readonly #rps: { readonly value: number };
  readonly #maxProbability: RuntimeDouble;

  /** Throws a BatonError with its place. */
  constructor(config: AdmissionControl, runtime: Runtime) {
    const { aggression, max_rejection_probability: max, rps_threshold: rps, sr_threshold: threshold } = config;
    this.windowMs =
      config.sampling_window === undefined
        ? DEFAULT_WINDOW_MS
        : Math.floor(durationMs(config.sampling_window) / 1000) * 1000;
    this.#enabled = runtime.flag(config.enabled, true);
    this.#ranges = httpRanges(config);
    this.#grpc = grpcCodes(config);
    this.#aggression = runtime.double(aggression?.runtime_key, Number(aggression?.default_value ?? 1));
    this.#threshold = runtime.double(
      threshold?.runtime_key,
      Number(threshold?.default_value?.value ?? DEFAULT_THRESHOLD),
    );
    this.#rps = runtime.integer(rps?.runtime_key, rps?.default_value ?? 0);
    this.#maxProbability = runtime.double(
      max?.runtime_key,
      Number(max?.default_value?.value ?? DEFAULT_MAX_PROBABILITY),
    );
    if (threshold !== undefined && Number(threshold.default_value?.value ?? 0) < MIN_THRESHOLD) {
      const where = 'sr_threshold.default_value';
      throw new BatonError('CONFIG_INVALID', `it must be at least ${MIN_THRESHOLD} %`, { where });
    }
  }

  get isEnabled(): boolean {
    return this.#enabled.value;
  }

  /** Below this rate no request is rejected. */
  get minRps(): number {
    return this.#rps.value;
  }

  isHttpSuccess(status: number): boolean {
    return this.#ranges.some(({ end, start }) => status >= start && status < end);
  }

  isGrpcSuccess(status: number): boolean {
    return this.#grpc.has(status);
  }

  /** Returns the probability with which a request is rejected, after `successes` of `requests`. */
  rejectionProbability(requests: number, successes: number): number {
    const threshold = Math.min(Math.max(this.#threshold.value, MIN_THRESHOLD), 100) / 100;
    const probability = Math.max(0, (requests - successes / threshold) / (requests + 1));
    const bent = probability ** (1 / Math.max(1, this.#aggression.value));
    return Math.min(bent, Math.min(this.#maxProbability.value, 100) / 100);
  }
}

function httpRanges({ success_criteria: criteria }: AdmissionControl) {
  const ranges = criteria?.http_criteria?.http_success_status?.map(({ end = 0, start = 0 }) => ({ start, end }));
  ranges?.forEach(({ end, start }, index) => {
    if (start <= end && start >= 100 && end <= 600) return;
    const where = `success_criteria.http_criteria.http_success_status[${index}]`;
    throw new BatonError('CONFIG_INVALID', `[${start}, ${end}) is no range of HTTP statuses, from 100 to 600`, {
      where,
    });
  });
  return ranges ?? DEFAULT_HTTP_RANGES;
}

function grpcCodes({ success_criteria: criteria }: AdmissionControl): ReadonlySet<number> {
  const codes = criteria?.grpc_criteria?.grpc_success_status ?? DEFAULT_GRPC;
  codes.forEach((code, index) => {
    if (code <= LAST_GRPC) return;
    const where = `success_criteria.grpc_criteria.grpc_success_status[${index}]`;
    throw new BatonError('CONFIG_INVALID', `${code} is no status of gRPC`, { where });
  });
  return new Set(codes);
}
