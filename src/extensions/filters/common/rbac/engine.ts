// Decisions about requests and connections, by policies or by a matcher.

import { type HeaderBlock, oneWord, type Struct, type ThreadStats } from '../../../sdk.js';
import type { Addresses } from './conditions.js';

export interface Engine {
  /** `headers` is undefined for a connection. `stats`: for counters of matchers. */
  decide(headers: HeaderBlock | undefined, addresses: Addresses, stats?: ThreadStats): Outcome;
}

/** A decision. There is one object for each policy, not for each request. */
export class Outcome {
  readonly isAllowed: boolean;
  /** The policy that matches; undefined: none does. */
  readonly policy: string | undefined;
  /** Whether the request should be logged; undefined: no action LOG says so. */
  readonly isLogged: boolean | undefined;
  /** By prefix: filters that share a route may have several. */
  readonly #metadata = new Map<string, Struct>();

  constructor(isAllowed: boolean, policy: string | undefined, isLogged: boolean | undefined) {
    this.isAllowed = isAllowed;
    this.policy = policy;
    this.isLogged = isLogged;
  }

  /** Returns the dynamic metadata about the decision. `prefix`: of its keys, one of few. */
  metadata(prefix: string): Struct {
    let metadata = this.#metadata.get(prefix);
    if (metadata !== undefined) return metadata;
    metadata = {
      ...(this.policy !== undefined && { [`${prefix}effective_policy_id`]: this.policy }),
      [`${prefix}engine_result`]: this.isAllowed ? 'allowed' : 'denied',
    };
    this.#metadata.set(prefix, metadata);
    return metadata;
  }
}

/** Returns the details of a denial for access logs. `policy`: the policy that denied, or undefined if none allowed. */
export function denialDetails(policy: string | undefined): string {
  return `rbac_access_denied_matched_policy[${oneWord(policy ?? 'none')}]`;
}
