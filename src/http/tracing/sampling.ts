// Decides whether a request is traced: by its request ID, its headers and the configured fractions, in Envoy's order.

import type { Random } from '../../common/random.js';
import { headerKey } from '../../common/text/header-names.js';
import type { FractionalPercent, Percent } from '../../config/generated/api.js';
import type { Runtime, RuntimeFraction } from '../../runtime/runtime.js';
import { findReasonedId, findRequestId, type RequestIdRules } from '../headers/edge/request-id-rules.js';
import type { HeaderBlock } from '../headers/header-block.js';
import { NUMBER_DIGITS, reasonIn, requestIdNumber, TraceReason, writeReason } from './trace-reason.js';

const CLIENT_TRACE_ID = headerKey('x-client-trace-id');
const FORCE_TRACE = headerKey('x-envoy-force-trace');
/** Numbers of requests are below this. */
const BUCKETS = 10_000;

/** The fractions of a connection manager or of a route. */
export interface SamplingFractions {
  readonly client: RuntimeFraction;
  readonly random: RuntimeFraction;
  readonly overall: RuntimeFraction;
}

/** The three fields of HttpConnectionManager.Tracing and route.v3.Tracing. */
export interface SamplingConfig {
  readonly client_sampling?: FractionalPercent | Percent;
  readonly random_sampling?: FractionalPercent | Percent;
  readonly overall_sampling?: FractionalPercent | Percent;
}

export function compileFractions(config: SamplingConfig, runtime: Runtime): SamplingFractions {
  return {
    client: runtime.fraction('tracing.client_enabled', fractionOf(config.client_sampling)),
    random: runtime.fraction('tracing.random_sampling', fractionOf(config.random_sampling)),
    overall: runtime.fraction('tracing.global_enabled', fractionOf(config.overall_sampling)),
  };
}

/** Returns why the request is traced, and writes the reason into its request ID. */
export function decide(
  headers: HeaderBlock,
  { client, overall, random }: SamplingFractions,
  { decidesSampling, packsReason }: RequestIdRules,
  source: Random,
): TraceReason {
  if (!decidesSampling) return TraceReason.Sampling;
  // As in Envoy, any ID that begins with a number decides, but only a UUID carries the reason.
  const at = findRequestId(headers, NUMBER_DIGITS);
  const { bytes } = headers.memory;
  const number = at < 0 ? -1 : requestIdNumber(bytes, at);
  if (number < 0) return TraceReason.NotTraceable;
  const bucket = number % BUCKETS;
  const uuid = packsReason ? findReasonedId(headers) : -1;
  const before = uuid < 0 ? TraceReason.NotTraceable : reasonIn(bytes, uuid);
  let reason = before;
  if (reason === TraceReason.NotTraceable) {
    if (headers.find(CLIENT_TRACE_ID) >= 0 && client.isHit(source)) reason = TraceReason.ClientForced;
    else if (headers.find(FORCE_TRACE) >= 0) reason = TraceReason.ServiceForced;
    else if (random.isHitByBucket(bucket)) reason = TraceReason.Sampling;
  }
  if (reason !== TraceReason.NotTraceable && !overall.isHitByBucket(bucket)) reason = TraceReason.NotTraceable;
  if (uuid >= 0 && reason !== before) writeReason(bytes, uuid, reason);
  return reason;
}

/** Absent: all. A Percent has steps of a hundredth. */
function fractionOf(config: FractionalPercent | Percent | undefined): FractionalPercent {
  if (config === undefined) return { numerator: 100, denominator: 'HUNDRED' };
  if ('numerator' in config || 'denominator' in config) return config;
  const { value = 0 } = config as Percent;
  return { numerator: Math.floor(Number(value) * 100), denominator: 'TEN_THOUSAND' };
}
