// GET /explain: the question and its answer.

import type { DescribedRequest } from '../http/routing/explanation/request-head.js';
import type { RouteVerdict } from '../http/routing/explanation/route-explanation.js';
import type { Address } from '../io/addresses/address.js';

/** A request that nobody sent. */
export interface ExplainQuestion {
  readonly request: DescribedRequest;
  /** Name of the listener; undefined: all that serve HTTP. */
  readonly listener: string | undefined;
  /** The client uses TLS. */
  readonly isTls: boolean;
  /** SNI; '' without. */
  readonly serverName: string;
  /** ALPN. */
  readonly applicationProtocols: readonly string[];
  readonly source: Address;
  /** Decides for weighted clusters and fractions, by its remainder. */
  readonly randomValue: bigint;
}

/** Where the request goes, as far as it gets. */
export interface Explanation {
  readonly listener: { readonly name: string; readonly address: string };
  /** Undefined if no filter chain takes the connection. */
  readonly filterChain?: { readonly name: string; readonly networkFilters: readonly string[] };
  /** Undefined for a chain without a connection manager. */
  readonly http?: ExplainedHttp;
}

export interface ExplainedHttp {
  readonly filters: readonly ExplainedFilter[];
  /** Set if the connection manager answers before it looks for a route. */
  readonly refusal?: ExplainedAction;
  /** Undefined with `refusal`, while the routes have not arrived, and if no scope has the key of the request. */
  readonly routes?: ExplainedRoutes;
}

export interface ExplainedFilter {
  readonly name: string;
  readonly type: string;
  /** Left out by the route, the virtual host, the route configuration or the connection manager. */
  readonly isDisabled: boolean;
}

export interface ExplainedRoutes {
  readonly name: string;
  /** Undefined if no domain fits. */
  readonly virtualHost?: { readonly name: string; readonly domain: string };
  readonly tried: readonly RouteVerdict[];
  readonly action: ExplainedAction;
}

export type ExplainedAction =
  | { readonly kind: 'not found' }
  | { readonly kind: 'answer before routing'; readonly status: number; readonly details: string }
  | { readonly kind: 'redirect'; readonly status: number; readonly location: string }
  | { readonly kind: 'direct response'; readonly status: number }
  | { readonly kind: 'forward to the cluster that a plugin chooses'; readonly authority: string; readonly path: string }
  | {
      readonly kind: 'forward';
      readonly cluster: string;
      /** Undefined if there is no such cluster; then the status of the answer is `missingStatus`. */
      readonly hosts: readonly ExplainedHost[] | undefined;
      readonly policy: string;
      readonly missingStatus: number;
      /** The Host and path that the host receives. */
      readonly authority: string;
      readonly path: string;
    };

export interface ExplainedHost {
  readonly address: string;
  readonly health: string;
  readonly priority: number;
  readonly weight: number;
}
