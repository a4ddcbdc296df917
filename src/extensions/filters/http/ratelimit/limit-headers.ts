// The response fields that describe limits: X-RateLimit of draft-polli-ratelimit-headers-03, and retry-after.

import { type HeaderBlock, headerKey, type RateLimitDescriptor } from '../../../sdk.js';
import type { LimitStatus } from '../../common/rate-limit/limit-answer.js';

const LIMIT = headerKey('x-ratelimit-limit');
const REMAINING = headerKey('x-ratelimit-remaining');
const RESET = headerKey('x-ratelimit-reset');
const RETRY_AFTER = headerKey('retry-after');

/**
 * Adds the fields for the limit with the fewest remaining requests, and lists the others. `areDefault`: what applies to descriptors that do
 * not decide themselves.
 */
export function addLimitHeaders(
  headers: HeaderBlock,
  statuses: readonly LimitStatus[],
  descriptors: readonly RateLimitDescriptor[],
  areDefault: boolean,
): void {
  let lowest: number | undefined;
  let policy = '';
  for (const [index, { limit, remaining }] of statuses.entries()) {
    if (limit === undefined) continue;
    if (lowest === undefined || remaining < statuses[lowest]!.remaining) lowest = index;
    if (limit.seconds === 0 || !isShown(descriptors[index], areDefault)) continue;
    policy += `, ${limit.requests};w=${limit.seconds}`;
    if (limit.name !== '') policy += `;name="${safeName(limit.name)}"`;
  }
  if (lowest === undefined || !isShown(descriptors[lowest], areDefault)) return;
  const { limit, remaining, resetSeconds } = statuses[lowest]!;
  headers.add(LIMIT, `${limit!.requests}${policy}`);
  headers.add(REMAINING, String(remaining));
  headers.add(RESET, String(resetSeconds));
}

/** Adds the time after which no limit that the request has exceeded refuses it. */
export function addRetryAfter(headers: HeaderBlock, statuses: readonly LimitStatus[]): void {
  let seconds = 0;
  for (const { isOver, resetSeconds } of statuses) if (isOver) seconds = Math.max(1, seconds, resetSeconds);
  if (seconds > 0) headers.add(RETRY_AFTER, String(seconds));
}

function isShown(descriptor: RateLimitDescriptor | undefined, areDefault: boolean): boolean {
  const own = descriptor?.headers ?? 'UNSPECIFIED';
  return own === 'UNSPECIFIED' ? areDefault : own === 'DRAFT_VERSION_03';
}

/** A service's text may hold anything. */
function safeName(name: string): string {
  return name.replace(/[^\x20-\x7e]/g, '?');
}
