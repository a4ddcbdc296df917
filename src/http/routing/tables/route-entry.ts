// One entry of a virtual host's routes: conditions, and the route or routes for matching requests.

import type { StreamInfo } from '../../../access-log/stream/stream-info.js';
import type { RouteMatch } from '../../../config/generated/api.js';
import type { Memory } from '../../../io/memory.js';
import type { ConnectionSecurity } from '../../../io/tls/connection-security.js';
import type { Runtime, RuntimeFraction } from '../../../runtime/runtime.js';
import { isGrpcRequest } from '../../headers/grpc-reply.js';
import { type HeaderBlock, Method } from '../../headers/header-block.js';
import type { RouteChoice } from '../actions/cluster-choice.js';
import type { Route } from '../actions/route.js';
import { CookieRule } from '../matching/cookie-rule.js';
import { compileHeaderRules, type HeaderRule, matchesAll } from '../matching/header-rule.js';
import type { PathRule } from '../matching/path-rule.js';
import { QueryRule } from '../matching/query-rule.js';

export class RouteEntry<C> {
  readonly #path: PathRule;
  readonly #conditions: RouteConditions | undefined;
  readonly #route: Route<C> | undefined;
  readonly #choice: RouteChoice<C> | undefined;

  constructor(path: PathRule, conditions: RouteConditions | undefined, target: Route<C> | RouteChoice<C>) {
    this.#path = path;
    this.#conditions = conditions;
    if ('choose' in target) this.#choice = target;
    else this.#route = target;
  }

  matches(memory: Memory, headers: HeaderBlock, random: number, security: ConnectionSecurity | undefined): boolean {
    const isMatch =
      headers.method === Method.Connect
        ? this.#path.isForConnect
        : this.#path.matches(memory, headers.pathStart, headers.pathEnd);
    if (!isMatch) return false;
    return this.#conditions === undefined || this.#conditions.hold(headers, random, security);
  }

  /** Returns undefined if the entry has no route after all. */
  route(headers: HeaderBlock, random: number, info: StreamInfo | undefined): Route<C> | undefined {
    return this.#route ?? this.#choice!.choose(headers, random, info);
  }
}

/** The conditions of a route in addition to the path. */
export class RouteConditions {
  readonly #headers: readonly HeaderRule[] | undefined;
  readonly #query: readonly QueryRule[];
  readonly #cookies: readonly CookieRule[];
  readonly #isGrpc: boolean;
  /** The fraction of requests that match; undefined: all. */
  readonly #fraction: RuntimeFraction | undefined;

  /** Whether the client must have a certificate, and a verified one; undefined: either. */
  readonly #hasCertificate: boolean | undefined;
  readonly #isVerified: boolean | undefined;

  private constructor(match: RouteMatch, where: string, runtime: Runtime) {
    this.#headers = compileHeaderRules(match.headers, `${where}.headers`);
    this.#query = (match.query_parameters ?? []).map(
      (config, index) => new QueryRule(config, `${where}.query_parameters[${index}]`),
    );
    this.#cookies = (match.cookies ?? []).map((config, index) => new CookieRule(config, `${where}.cookies[${index}]`));
    this.#isGrpc = match.grpc !== undefined;
    this.#hasCertificate = match.tls_context?.presented;
    this.#isVerified = match.tls_context?.validated;
    this.#fraction = match.runtime_fraction && runtime.fractionOf(match.runtime_fraction, {});
  }

  /** Returns undefined if the path is the only condition. */
  static of(match: RouteMatch, where: string, runtime: Runtime): RouteConditions | undefined {
    const hasConditions =
      (match.headers?.length ?? 0) > 0 ||
      (match.query_parameters?.length ?? 0) > 0 ||
      (match.cookies?.length ?? 0) > 0 ||
      match.grpc !== undefined ||
      match.tls_context !== undefined ||
      match.runtime_fraction !== undefined;
    return hasConditions ? new RouteConditions(match, where, runtime) : undefined;
  }

  /** `security`: of the client's connection; undefined without TLS. */
  hold(headers: HeaderBlock, random: number, security: ConnectionSecurity | undefined): boolean {
    if (this.#fraction !== undefined && !this.#fraction.isHitBy(random)) return false;
    if (this.#isGrpc && !isGrpcRequest(headers)) return false;
    if (this.#hasCertificate !== undefined && this.#hasCertificate !== (security?.peer !== undefined)) return false;
    if (this.#isVerified !== undefined && this.#isVerified !== (security?.isPeerVerified ?? false)) return false;
    if (this.#headers !== undefined && !matchesAll(this.#headers, headers)) return false;
    for (let i = 0; i < this.#query.length; i++) if (!this.#query[i]!.matches(headers)) return false;
    for (let i = 0; i < this.#cookies.length; i++) if (!this.#cookies[i]!.matches(headers)) return false;
    return true;
  }
}
