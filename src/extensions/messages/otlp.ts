// Values of OpenTelemetry's messages (opentelemetry.proto.common.v1). Texts have one character per byte.

import { ProtobufWriter, type TagValue } from '../sdk.js';
import { writeText } from './wire.js';

const NANOS_PER_MICRO = 1000n;

const pair = new ProtobufWriter();
const any = new ProtobufWriter();

/** Writes a KeyValue. */
export function writeAttribute(to: ProtobufWriter, field: number, key: string, value: TagValue): void {
  any.clear();
  writeAny(any, value);
  pair.clear();
  writeText(pair, 1, key);
  pair.message(2, any);
  to.message(field, pair);
}

/** Writes the fields of an AnyValue. Those of a oneof are written even if they are empty. */
export function writeAny(to: ProtobufWriter, value: TagValue): void {
  if (typeof value === 'boolean') to.number(2, value ? 1 : 0);
  else if (typeof value === 'bigint') to.int64(3, value);
  else if (typeof value === 'number') to.double(4, value);
  else if (value === '') to.string(1, '');
  else writeText(to, 1, value);
}

/** Writes a fixed64 with nanoseconds since 1970. `ms`: wall clock, exact to the microsecond. */
export function writeNanos(to: ProtobufWriter, field: number, ms: number): void {
  to.fixed64(field, BigInt(Math.round(ms * 1000)) * NANOS_PER_MICRO);
}
