// The question to a rate limit service (envoy.service.ratelimit.v3.RateLimitRequest).

import type { RateLimitUnit } from '../../../../config/generated/api.js';
import { writeNumber, writeText } from '../../../messages/wire.js';
import { ProtobufWriter, type RateLimitDescriptor } from '../../../sdk.js';

const UNITS: { readonly [unit in RateLimitUnit]: number } = {
  UNKNOWN: 0,
  SECOND: 1,
  MINUTE: 2,
  HOUR: 3,
  DAY: 4,
  MONTH: 5,
  YEAR: 6,
};

const message = new ProtobufWriter();
const descriptor = new ProtobufWriter();
const part = new ProtobufWriter();

/** Returns the encoded question. `domain` has one character per byte. `hits`: 0 leaves the number to the service. */
export function encodeQuestion(domain: string, descriptors: readonly RateLimitDescriptor[], hits: number): Uint8Array {
  message.clear();
  writeText(message, 1, domain);
  for (const each of descriptors) {
    writeDescriptor(each);
    message.message(2, descriptor);
  }
  writeNumber(message, 3, hits);
  return message.copy();
}

function writeDescriptor({ areHitsNegative, entries, hits, limit }: RateLimitDescriptor): void {
  descriptor.clear();
  for (let index = 0; index < entries.length; index += 2) {
    part.clear();
    writeText(part, 1, entries[index]!);
    writeText(part, 2, entries[index + 1]!);
    descriptor.message(1, part);
  }
  if (limit !== undefined) {
    part.clear();
    writeNumber(part, 1, limit.requestsPerUnit);
    writeNumber(part, 2, UNITS[limit.unit]);
    descriptor.message(2, part);
  }
  if (hits !== undefined) {
    part.clear();
    writeNumber(part, 1, hits);
    descriptor.message(3, part);
  }
  if (areHitsNegative) descriptor.number(4, 1);
}
