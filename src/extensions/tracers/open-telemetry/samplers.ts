// Samplers of the OpenTelemetry tracer: which of the requests that the connection manager traces are reported.

import type { Any, TypedExtensionConfig } from '../../../config/generated/api.js';
import { unpack } from '../../sdk.js';
import type { TraceParent } from '../common/w3c.js';

const PACKAGE = 'envoy.extensions.tracers.opentelemetry.samplers.v3';
export const ALWAYS_ON = `${PACKAGE}.AlwaysOnSamplerConfig`;
export const PARENT_BASED = `${PACKAGE}.ParentBasedSamplerConfig`;
export const RATIO_BASED = `${PACKAGE}.TraceIdRatioBasedSamplerConfig`;

const DENOMINATORS = { HUNDRED: 100n, TEN_THOUSAND: 10_000n, MILLION: 1_000_000n } as const;

/** Returns whether the spans of a trace are reported. `parent`: the caller's span. */
export type Sampler = (traceId: string, parent: TraceParent | undefined) => boolean;

/** Without a sampler the caller decides, and a trace that begins here is reported. */
export function createSampler(config: TypedExtensionConfig | undefined): Sampler {
  const any = config?.typed_config as Any | undefined;
  const parentBased = unpack(any, PARENT_BASED);
  if (parentBased !== undefined) return basedOnParent(createSampler(parentBased.wrapped_sampler));
  const ratioBased = unpack(any, RATIO_BASED);
  if (ratioBased !== undefined) {
    const { denominator = 'HUNDRED', numerator = 0 } = ratioBased.sampling_percentage ?? {};
    return basedOnRatio(BigInt(numerator), DENOMINATORS[denominator]);
  }
  return unpack(any, ALWAYS_ON) === undefined ? basedOnParent(() => true) : () => true;
}

function basedOnParent(ofRoot: Sampler): Sampler {
  return (traceId, parent) => (parent === undefined ? ofRoot(traceId, parent) : parent.isSampled);
}

/** As in Envoy, the number of a trace is in the first 8 bytes of its ID, the lowest byte first. */
function basedOnRatio(numerator: bigint, denominator: bigint): Sampler {
  return (traceId) => Buffer.from(traceId.slice(0, 16), 'hex').readBigUInt64LE() % denominator < numerator;
}
