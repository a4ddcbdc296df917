// A RouteMatch outside of a route table: a condition of a filter on requests.

import type { RouteMatch } from '../../../config/generated/api.js';
import type { ConnectionSecurity } from '../../../io/tls/connection-security.js';
import type { Runtime } from '../../../runtime/runtime.js';
import { type HeaderBlock, Method } from '../../headers/header-block.js';
import { PathRule } from '../matching/path-rule.js';
import { RouteConditions } from './route-entry.js';

export class RequestMatch {
  readonly #path: PathRule;
  readonly #conditions: RouteConditions | undefined;

  /** `where`: the path of the match. Throws a BatonError if it cannot be compiled. */
  constructor(match: RouteMatch, where: string, runtime: Runtime) {
    this.#path = new PathRule(match, where);
    this.#conditions = RouteConditions.of(match, where, runtime);
  }

  /** `random`: 32 random bits; `security`: of the client's connection, undefined without TLS. */
  matches(headers: HeaderBlock, random: number, security: ConnectionSecurity | undefined): boolean {
    const isMatch =
      headers.method === Method.Connect
        ? this.#path.isForConnect
        : this.#path.matches(headers.memory, headers.pathStart, headers.pathEnd);
    return isMatch && this.#conditions?.hold(headers, random, security) !== false;
  }
}
