// grpc-timeout: how long the client of a gRPC call waits, as at most eight digits and a unit (gRPC's PROTOCOL-HTTP2.md).

import { headerKey } from '../../common/text/header-names.js';
import type { HeaderBlock } from './header-block.js';

const GRPC_TIMEOUT = headerKey('grpc-timeout');
const LARGEST = 99_999_999;

/** Milliseconds of each unit, except for micro- and nanoseconds (u, n). */
const UNITS: { readonly [unit: string]: number } = { H: 3_600_000, M: 60_000, S: 1000, m: 1 };
/** Units for output: the first in which the number has at most eight digits is used. */
const WRITTEN = ['m', 'S', 'M', 'H'] as const;

/** Returns whole milliseconds, rounded up; undefined if the header is absent or invalid. */
export function grpcTimeoutMs(headers: HeaderBlock): number | undefined {
  const text = headers.get(GRPC_TIMEOUT);
  if (text === undefined || !/^[0-9]{1,8}[HMSmun]$/.test(text)) return undefined;
  const number = Number(text.slice(0, -1));
  const unit = text.at(-1)!;
  if (unit === 'u') return Math.ceil(number / 1000);
  return unit === 'n' ? Math.ceil(number / 1_000_000) : number * UNITS[unit]!;
}

/** Sets grpc-timeout, rounded down to the unit that is used. */
export function setGrpcTimeout(headers: HeaderBlock, milliseconds: number): void {
  const unit = WRITTEN.find((each) => Math.floor(milliseconds / UNITS[each]!) <= LARGEST) ?? 'H';
  headers.set(GRPC_TIMEOUT, `${Math.min(LARGEST, Math.floor(milliseconds / UNITS[unit]!))}${unit}`);
}

export function removeGrpcTimeout(headers: HeaderBlock): void {
  headers.remove(GRPC_TIMEOUT);
}
