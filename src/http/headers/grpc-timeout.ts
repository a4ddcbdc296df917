// grpc-timeout: how long the client of a gRPC call waits (gRPC's PROTOCOL-HTTP2.md): at most eight digits and a unit.

import { headerKey } from '../../common/text/header-names.js';
import type { HeaderBlock } from './header-block.js';

const GRPC_TIMEOUT = headerKey('grpc-timeout');
const LARGEST = 99_999_999;

/** Milliseconds of each unit that has whole ones; micro- and nanoseconds (u, n) have not. */
const UNITS: { readonly [unit: string]: number } = { H: 3_600_000, M: 60_000, S: 1000, m: 1 };
/** Those that are written: the first in which the number has no more than eight digits. */
const WRITTEN = ['m', 'S', 'M', 'H'] as const;

/** Whole milliseconds, rounded up; undefined: it says nothing, or what is none. */
export function grpcTimeoutMs(headers: HeaderBlock): number | undefined {
  const text = headers.get(GRPC_TIMEOUT);
  if (text === undefined || !/^[0-9]{1,8}[HMSmun]$/.test(text)) return undefined;
  const number = Number(text.slice(0, -1));
  const unit = text.at(-1)!;
  if (unit === 'u') return Math.ceil(number / 1000);
  return unit === 'n' ? Math.ceil(number / 1_000_000) : number * UNITS[unit]!;
}

/** Milliseconds that have no whole number of a longer unit are cut. */
export function setGrpcTimeout(headers: HeaderBlock, milliseconds: number): void {
  const unit = WRITTEN.find((each) => Math.floor(milliseconds / UNITS[each]!) <= LARGEST) ?? 'H';
  headers.set(GRPC_TIMEOUT, `${Math.min(LARGEST, Math.floor(milliseconds / UNITS[unit]!))}${unit}`);
}

export function removeGrpcTimeout(headers: HeaderBlock): void {
  headers.remove(GRPC_TIMEOUT);
}
