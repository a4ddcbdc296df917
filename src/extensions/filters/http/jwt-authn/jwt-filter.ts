// The jwt_authn filter of one request: verifies its tokens, and waits for keys if they must be fetched.

import {
  type Clock,
  type HeaderBlock,
  HeadersStatus,
  type HttpFilter,
  headerKey,
  Method,
  oneWord,
  ResponseFlag,
  requestScheme,
  type Scope,
  type StreamControl,
  type Struct,
} from '../../../sdk.js';
import type { JwtRules } from './jwt-rules.js';
import type { KeySource, KeyWaiter } from './key-source.js';
import type { Steps, Verification } from './requirement.js';
import { JwtStats } from './stats.js';
import { Status, statusText } from './status.js';

const METADATA = 'envoy.filters.http.jwt_authn';
const { at } = JwtStats;

export class JwtFilter implements HttpFilter, Verification, KeyWaiter {
  choosesRouteAgain = false;
  headers!: HeaderBlock;
  readonly #stream: StreamControl;
  readonly #rules: JwtRules;
  readonly #stats: Scope;
  readonly #clock: Clock;
  /** The name of the requirement of the route; undefined: the rules apply. */
  readonly #requirementName: string | undefined;
  #steps: Steps | undefined;
  #source: KeySource | undefined;
  #isWaiting = false;
  #metadata: Record<string, Struct> | undefined;

  constructor(stream: StreamControl, rules: JwtRules, stats: Scope, clock: Clock, requirementName: string | undefined) {
    this.#stream = stream;
    this.#rules = rules;
    this.#stats = stats;
    this.#clock = clock;
    this.#requirementName = requirementName;
  }

  decodeHeaders(headers: HeaderBlock): HeadersStatus {
    this.headers = headers;
    if (this.#rules.bypassesPreflight && isPreflight(headers)) {
      this.#stats.increment(at.cors_preflight_bypassed);
      this.#stats.increment(at.allowed);
      return HeadersStatus.Continue;
    }
    for (const key of this.#rules.ownFields) headers.remove(key);
    const requirement = this.#rules.requirementOf(headers, this.#stream.info, this.#requirementName);
    if (typeof requirement === 'string') {
      this.#deny(403, `Failed JWT authentication: ${requirement}`, requirement, undefined);
      return HeadersStatus.StopIteration;
    }
    if (requirement === undefined) {
      this.#stats.increment(at.allowed);
      return HeadersStatus.Continue;
    }
    this.#steps = requirement.verify(this);
    return this.#go() ? HeadersStatus.Continue : HeadersStatus.StopIteration;
  }

  onDestroy(): void {
    this.#source?.forget(this);
    this.#source = undefined;
  }

  // ── The verification ─────────────────────────────────────────────────────────────────────────────────────────────

  /** Not when the request arrived: filters before this one, and fetches of keys, may hold it for long. */
  get nowSeconds(): number {
    return Math.floor(this.#clock.realtimeMs / 1000);
  }

  readonly setMetadata = (key: string, value: Struct): void => {
    this.#metadata ??= { __proto__: null } as unknown as Record<string, Struct>;
    this.#metadata[key] = value;
  };

  countLookup(isHit: boolean): void {
    this.#stats.increment(isHit ? at.jwt_cache_hit : at.jwt_cache_miss);
  }

  onKeys(): void {
    this.#source = undefined;
    this.#stream.run(() => {
      if (!this.#go()) return;
      this.#stream.continueDecoding();
      this.#stream.resumeRequest();
    });
  }

  /** Runs until keys are needed, or to the end. Returns whether the request goes on. */
  #go(): boolean {
    const step = this.#steps!.next();
    if (step.done !== true) {
      this.#source = step.value;
      if (!this.#isWaiting) this.#stream.pauseRequest();
      this.#isWaiting = true;
      step.value.wait(this);
      return false;
    }
    if (this.#metadata !== undefined) this.#stream.info.ownDynamicMetadata().merge(METADATA, this.#metadata);
    if (step.value !== Status.Ok) {
      this.#fail(step.value);
      return false;
    }
    this.#stats.increment(at.allowed);
    if (this.choosesRouteAgain) this.#stream.continueWithNewRoute();
    return true;
  }

  #fail(status: Status): void {
    const code = status === Status.AudienceNotAllowed ? 403 : 401;
    const { headers } = this;
    const scheme = requestScheme(headers) || 'http';
    const url = `${scheme}://${headers.get(HOST) ?? ''}${headers.pathText()}`.replace(/["\\]/g, encodeURIComponent);
    const error = status === Status.Missing ? '' : ', error="invalid_token"';
    const text = statusText(status);
    this.#deny(code, text, text, `Bearer realm="${url.slice(0, MAX_REALM)}"${error}`);
  }

  #deny(status: number, body: string, reason: string, challenge: string | undefined): void {
    const isBare = this.#rules.stripsFailures;
    this.#stats.increment(at.denied);
    this.#stream.sendLocalReply({
      status,
      body: isBare ? '' : body,
      details: `jwt_authn_access_denied{${oneWord(reason)}}`,
      flags: ResponseFlag.None,
      editHeaders(headers) {
        if (challenge !== undefined && !isBare) headers.set(AUTHENTICATE, challenge);
      },
    });
  }
}

/** A longer URL is cut off in the challenge. */
const MAX_REALM = 256;

function isPreflight(headers: HeaderBlock): boolean {
  return (
    headers.method === Method.Options &&
    (headers.get(ORIGIN) ?? '') !== '' &&
    (headers.get(REQUEST_METHOD) ?? '') !== ''
  );
}

const HOST = headerKey('host');
const ORIGIN = headerKey('origin');
const REQUEST_METHOD = headerKey('access-control-request-method');
const AUTHENTICATE = headerKey('www-authenticate');
