// The answer of a rate limit service (envoy.service.ratelimit.v3.RateLimitResponse).

import type { Struct } from '../../../../config/generated/api.js';
import { loadMessages } from '../../../grpc-sdk.js';
import { filledStruct, type ProtoStruct } from '../../../messages/proto-struct.js';
import { byteText, type HeaderKey, headerKey } from '../../../sdk.js';
import { isFraming } from '../framing.js';

const MESSAGE = 'envoy.service.ratelimit.v3.RateLimitResponse';
const NAME = /^[\w!#$%&'*+.^`|~-]+$/;
const OVER_LIMIT = 2;
/** Seconds of the service's units; the index is RateLimit.Unit. */
const UNIT_SECONDS = [0, 1, 60, 3600, 86_400, 30 * 86_400, 365 * 86_400, 7 * 86_400];

/** A field to add. Its value has one character per byte. */
export interface AddedField {
  readonly key: HeaderKey;
  readonly value: string;
}

/** How a request stands to one limit. */
export interface LimitStatus {
  readonly isOver: boolean;
  /** Undefined: the service has no limit for the descriptor. */
  readonly limit: { readonly requests: number; readonly seconds: number; readonly name: string } | undefined;
  readonly remaining: number;
  /** Whole seconds until the limit is reset. */
  readonly resetSeconds: number;
}

export interface LimitAnswer {
  readonly isOver: boolean;
  /** In the order of the descriptors. */
  readonly statuses: readonly LimitStatus[];
  readonly toClient: readonly AddedField[];
  readonly toHost: readonly AddedField[];
  readonly body: Uint8Array;
  /** Undefined: there is none. */
  readonly metadata: Struct | undefined;
}

/** The decoded message, with the API's names. */
interface Answer {
  readonly overall_code?: number;
  readonly statuses?: readonly {
    readonly code?: number;
    readonly current_limit?: {
      readonly name?: string;
      readonly requests_per_unit?: number;
      readonly unit?: number;
      readonly unit_multiplier?: { readonly value?: number };
    };
    readonly limit_remaining?: number;
    readonly duration_until_reset?: { readonly seconds?: number };
  }[];
  readonly response_headers_to_add?: readonly Field[];
  readonly request_headers_to_add?: readonly Field[];
  readonly raw_body?: Uint8Array;
  readonly dynamic_metadata?: ProtoStruct;
}

interface Field {
  readonly key?: string;
  readonly value?: string;
  readonly raw_value?: Uint8Array;
}

let type: ReturnType<typeof loadMessages>[string] | undefined;

/** Decodes an answer. Throws if it is not one. */
export function decodeLimitAnswer(message: Uint8Array): LimitAnswer {
  type ??= loadMessages(MESSAGE)[MESSAGE];
  const answer = type!.toObject(type!.decode(message), { longs: Number }) as Answer;
  return {
    isOver: answer.overall_code === OVER_LIMIT,
    statuses: (answer.statuses ?? []).map((status) => ({
      isOver: status.code === OVER_LIMIT,
      limit: limitOf(status.current_limit),
      remaining: status.limit_remaining ?? 0,
      resetSeconds: status.duration_until_reset?.seconds ?? 0,
    })),
    toClient: fieldsOf(answer.response_headers_to_add),
    toHost: fieldsOf(answer.request_headers_to_add),
    body: answer.raw_body ?? new Uint8Array(),
    metadata: filledStruct(answer.dynamic_metadata),
  };
}

function limitOf(limit: NonNullable<Answer['statuses']>[number]['current_limit']): LimitStatus['limit'] {
  if (limit === undefined) return undefined;
  const { name = '', requests_per_unit: requests = 0, unit = 0, unit_multiplier: multiplier } = limit;
  return { name, requests, seconds: (UNIT_SECONDS[unit] ?? 0) * (multiplier?.value ?? 1) };
}

/** Returns the fields that can be added. Others are left out: what the service has decided applies without them. */
function fieldsOf(fields: readonly Field[] = []): AddedField[] {
  const added: AddedField[] = [];
  for (const { key = '', raw_value: raw, value = '' } of fields) {
    const name = key.toLowerCase();
    const text = raw === undefined || raw.length === 0 ? byteText(value) : Buffer.from(raw).toString('latin1');
    if (NAME.test(name) && name !== 'host' && !isFraming(name) && !/[\0\r\n]/.test(text))
      added.push({ key: headerKey(name), value: text });
  }
  return added;
}
