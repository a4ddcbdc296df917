// Requests of a multiplexed connection that the client causes to be reset at once (CVE-2023-44487). A client most of whose requests end
// so is a flood, by Envoy's rule.

import { ResponseFlag } from '../../access-log/stream/response-flags.js';
import type { StreamInfo } from '../../access-log/stream/stream-info.js';

/** A client's reset, and faults of the client that reset its request (CVE-2025-8671). */
const RESET_BY_CLIENT = ResponseFlag.DownstreamRemoteReset | ResponseFlag.DownstreamProtocolError;
/** Envoy's defaults of overload.premature_reset_min_stream_lifetime_seconds and overload.premature_reset_total_stream_count. */
const EARLY_MS = 1000;
const FREE_RESETS = 500;

export class EarlyResets {
  #requests = 0;
  #resets = 0;

  /** Counts a request that has ended. Returns whether the client has become a flood. */
  isFloodAfter({ durationMs, responseFlags }: StreamInfo): boolean {
    this.#requests++;
    if ((responseFlags & RESET_BY_CLIENT) === 0 || durationMs >= EARLY_MS) return false;
    this.#resets++;
    return this.#resets * 2 > Math.max(FREE_RESETS, this.#requests);
  }
}
