// Why a request is traced, as the version digit of its request ID carries it from hop to hop (UuidRequestIdConfig.pack_trace_reason).

import { NOT_TRACED, REASON_AT } from '../headers/edge/request-id-rules.js';

export const enum TraceReason {
  NotTraceable = 0,
  Sampling = 1,
  ServiceForced = 2,
  ClientForced = 3,
}

/** Digits at the beginning of the ID that make its number. */
export const NUMBER_DIGITS = 8;
/** ASCII of the digits by TraceReason: 4, 9, a, b. */
const DIGITS = [NOT_TRACED, 0x39, 0x61, 0x62];

/** Returns the number in the first digits of the ID at `at`; -1 if these are not hexadecimal. */
export function requestIdNumber(bytes: Uint8Array, at: number): number {
  let number = 0;
  for (let i = 0; i < NUMBER_DIGITS; i++) {
    const digit = digitOf(bytes[at + i]!);
    if (digit < 0) return -1;
    number = number * 16 + digit;
  }
  return number;
}

export function reasonIn(bytes: Uint8Array, at: number): TraceReason {
  return Math.max(0, DIGITS.indexOf(bytes[at + REASON_AT]!)) as TraceReason;
}

export function writeReason(bytes: Uint8Array, at: number, reason: TraceReason): void {
  bytes[at + REASON_AT] = DIGITS[reason]!;
}

function digitOf(byte: number): number {
  if (byte >= 48 && byte <= 57) return byte - 48;
  const letter = byte | 32;
  return letter >= 97 && letter <= 102 ? letter - 87 : -1;
}
