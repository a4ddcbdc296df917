// The admission_control filter of one request: rejects it if too many recent ones have failed, or records its own outcome.

import {
  grpcStatusIn,
  type HeaderBlock,
  HeadersStatus,
  type HttpFilter,
  headerKey,
  isGrpcResponse,
  type Random,
  type Scope,
  type StreamControl,
  type WorkerContext,
} from '../../../sdk.js';
import type { RecentOutcomes } from './recent-outcomes.js';
import type { AdmissionRules } from './rules.js';
import { AdmissionStats } from './stats.js';

const GRPC_STATUS = headerKey('grpc-status');
/** Probabilities are compared in steps of this size. */
const STEPS = 10_000;

/** The common context of the filters of a chain on one worker. */
export interface Admissions {
  readonly worker: WorkerContext;
  readonly rules: AdmissionRules;
  readonly outcomes: RecentOutcomes;
  readonly stats: Scope;
}

export class AdmissionControlFilter implements HttpFilter {
  readonly #stream: StreamControl;
  readonly #admissions: Admissions;
  /** The outcome of the request counts and is not known yet. */
  #isPending = false;
  #hasGrpcTrailers = false;

  constructor(stream: StreamControl, admissions: Admissions) {
    this.#stream = stream;
    this.#admissions = admissions;
  }

  decodeHeaders(): HeadersStatus {
    const { outcomes, rules, stats, worker } = this.#admissions;
    if (!rules.isEnabled || this.#stream.info.isHealthCheck) return HeadersStatus.Continue;
    if (outcomes.averageRps(worker.clock.monotonicMs) >= rules.minRps && this.#rejects(worker.random)) {
      stats.increment(AdmissionStats.at.rq_rejected);
      this.#stream.sendLocalReply({ status: 503, body: '', details: 'denied_by_admission_control', flags: 0 });
      return HeadersStatus.StopIteration;
    }
    this.#isPending = true;
    return HeadersStatus.Continue;
  }

  encodeHeaders(headers: HeaderBlock, endStream: boolean): HeadersStatus {
    if (!this.#isPending) return HeadersStatus.Continue;
    const { rules } = this.#admissions;
    const status = isGrpcResponse(headers, endStream) ? grpcStatusIn(headers, GRPC_STATUS) : undefined;
    if (status !== undefined) this.#record(rules.isGrpcSuccess(status));
    else if (isGrpcResponse(headers, endStream)) this.#hasGrpcTrailers = true;
    else this.#record(rules.isHttpSuccess(headers.status));
    return HeadersStatus.Continue;
  }

  encodeTrailers(trailers: HeaderBlock): HeadersStatus {
    if (!this.#isPending || !this.#hasGrpcTrailers) return HeadersStatus.Continue;
    const status = grpcStatusIn(trailers, GRPC_STATUS);
    this.#record(status !== undefined && this.#admissions.rules.isGrpcSuccess(status));
    return HeadersStatus.Continue;
  }

  /** A request that gets no response has failed. */
  onDestroy(): void {
    if (this.#isPending) this.#record(false);
  }

  #rejects(random: Random): boolean {
    const { outcomes, rules } = this.#admissions;
    return rules.rejectionProbability(outcomes.requests, outcomes.successes) * STEPS > random.below(STEPS);
  }

  #record(isSuccess: boolean): void {
    const { outcomes, stats, worker } = this.#admissions;
    this.#isPending = false;
    outcomes.record(isSuccess, worker.clock.monotonicMs);
    stats.increment(isSuccess ? AdmissionStats.at.rq_success : AdmissionStats.at.rq_failure);
  }
}
