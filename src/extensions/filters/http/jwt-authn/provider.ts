// A provider of tokens: checks claims and signature of a token, and passes on what it contains.

import type { JwtProvider } from '../../../../config/generated/api.js';
import {
  compileStringMatcher,
  durationMs,
  type HeaderBlock,
  type HeaderKey,
  headerKey,
  type StringRule,
  valueAt,
} from '../../../sdk.js';
import { claimText, normalized } from './claims.js';
import type { KeySource } from './key-source.js';
import { type FoundToken, removeToken } from './locations.js';
import { Status } from './status.js';
import type { Token } from './token.js';
import { TokenCache } from './token-cache.js';

const DEFAULT_SKEW_SECONDS = 60;

/** Adds a value to the dynamic metadata of the filter. */
export type SetMetadata = (key: string, value: Token['payload']) => void;

interface ClaimHeader {
  readonly key: HeaderKey;
  readonly path: readonly string[];
}

export class Provider {
  readonly config: JwtProvider;
  readonly keySource: KeySource;
  readonly cache: TokenCache | undefined;
  /** Fields that only this filter may set. */
  readonly ownFields: readonly HeaderKey[];
  readonly #audiences: ReadonlySet<string>;
  readonly #subjects: StringRule | undefined;
  readonly #skewSeconds: number;
  readonly #maxLifetimeSeconds: number | undefined;
  readonly #payloadField: HeaderKey | undefined;
  readonly #claims: readonly ClaimHeader[];
  readonly #listClaims: readonly string[];

  constructor(config: JwtProvider, keySource: KeySource) {
    this.config = config;
    this.keySource = keySource;
    this.cache = config.jwt_cache_config && new TokenCache(config.jwt_cache_config);
    this.#audiences = audienceSet(config.audiences);
    this.#subjects = config.subjects && compileStringMatcher(config.subjects, 'subjects');
    this.#skewSeconds = config.clock_skew_seconds || DEFAULT_SKEW_SECONDS;
    const maxMs = durationMs(config.max_lifetime, undefined);
    this.#maxLifetimeSeconds = maxMs === undefined ? undefined : Math.floor(maxMs / 1000);
    this.#payloadField = config.forward_payload_header ? headerKey(config.forward_payload_header) : undefined;
    this.#claims = (config.claim_to_headers ?? []).map(({ claim_name = '', claim_path = [], header_name = '' }) => ({
      key: headerKey(header_name),
      path: claim_path.length > 0 ? claim_path.map(({ key }) => key!) : claim_name.split('.'),
    }));
    this.#listClaims = config.normalize_payload_in_metadata?.space_delimited_claims ?? [];
    this.ownFields = [...(this.#payloadField ? [this.#payloadField] : []), ...this.#claims.map(({ key }) => key)];
  }

  get issuer(): string {
    return this.config.issuer ?? '';
  }

  /** Checks all but the signature. `audiences`: of the requirement, in place of those of the provider. */
  checkClaims(token: Token, nowSeconds: number, audiences: ReadonlySet<string> = this.#audiences): Status {
    const { expires, issuedAt, notBefore } = token;
    const latest = nowSeconds + this.#skewSeconds;
    if (notBefore > latest) return Status.NotYetValid;
    if (expires > 0 && nowSeconds > expires + this.#skewSeconds) return Status.Expired;
    if (audiences.size > 0 && !token.audiences.some((each) => audiences.has(trimmed(each))))
      return Status.AudienceNotAllowed;
    if (this.#subjects?.matchesText(token.subject) === false) return Status.VerificationFails;
    if (this.config.require_expiration === true && expires === 0) return Status.VerificationFails;
    const lifetime = this.#maxLifetimeSeconds;
    if (lifetime === undefined) return Status.Ok;
    const isShort = expires > 0 && expires - (issuedAt === 0 ? nowSeconds : issuedAt) <= lifetime;
    return isShort ? Status.Ok : Status.VerificationFails;
  }

  /** Changes the request of a valid token. Returns whether it has changed fields. */
  apply(token: Token, { location }: FoundToken, headers: HeaderBlock, setMetadata: SetMetadata): boolean {
    const { forward, header_in_metadata, pad_forward_payload_header: isPadded, payload_in_metadata } = this.config;
    const { encodedPayload, header, payload } = token;
    if (this.#payloadField !== undefined) {
      const padding = isPadded === true ? '='.repeat((4 - (encodedPayload.length % 4)) % 4) : '';
      headers.add(this.#payloadField, encodedPayload + padding);
    }
    for (const { key, path } of this.#claims) {
      const text = claimText(valueAt(payload, path));
      // A claim may contain anything; a field may not.
      if (text !== '' && !/[\0\r\n]/.test(text)) headers.add(key, text);
    }
    if (forward !== true) removeToken(headers, location);
    if (header_in_metadata) setMetadata(header_in_metadata, header);
    if (payload_in_metadata) setMetadata(payload_in_metadata, normalized(payload, this.#listClaims));
    return this.config.clear_route_cache === true;
  }
}

/** Returns audiences as tokens are compared with them: as in Envoy, without scheme and trailing slash. */
export function audienceSet(audiences: readonly string[] | undefined): ReadonlySet<string> {
  return new Set((audiences ?? []).map(trimmed));
}

function trimmed(audience: string): string {
  return audience.replace(/^https?:\/\//, '').replace(/\/$/, '');
}
