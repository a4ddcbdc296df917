// What happens to requests for which filter_enabled or filter_enabled_metadata disables the filter.

import type { ExtAuthz } from '../../../../config/generated/api.js';
import {
  DataStatus,
  errorStatus,
  type HeaderBlock,
  HeadersStatus,
  type HttpFilter,
  type MetadataRule,
  ResponseFlag,
  type Runtime,
  type RuntimeFlag,
  type Scope,
  type StreamControl,
} from '../../../sdk.js';
import type { AuthorizationFilter } from './authorization-filter.js';
import { shadowDecision } from './shadow-decision.js';
import { ExtAuthzStats } from './stats.js';

export class DisabledRequests {
  readonly #stats: Scope;
  readonly #areDenied: RuntimeFlag;
  readonly #status: number;
  readonly #shadowKey: string | undefined;

  /** `shadowKey`: see CommonRules. */
  constructor(config: ExtAuthz, runtime: Runtime, stats: Scope, shadowKey: string | undefined) {
    this.#stats = stats;
    this.#areDenied = runtime.flag(config.deny_at_disable, false);
    this.#status = errorStatus(config.status_on_error, 403);
    this.#shadowKey = shadowKey;
  }

  /** Returns the filter of a request; undefined: the request passes. */
  filterOf(stream: StreamControl): HttpFilter | undefined {
    return this.#areDenied.value ? { decodeHeaders: () => this.apply(stream) } : this.#count();
  }

  /** Denies the request, or lets it pass. */
  apply(stream: StreamControl): HeadersStatus {
    this.#count();
    if (!this.#areDenied.value) return HeadersStatus.Continue;
    if (this.#shadowKey !== undefined) {
      this.#stats.increment(ExtAuthzStats.at.shadow_denied);
      // As in Envoy, the flag is set all the same.
      stream.info.responseFlags |= ResponseFlag.UnauthorizedExternalService;
      stream.info.ownFilterState().set(this.#shadowKey, shadowDecision('DENIED', this.#status));
      return HeadersStatus.Continue;
    }
    const flags = ResponseFlag.UnauthorizedExternalService;
    stream.sendLocalReply({ status: this.#status, body: '', details: 'ext_authz_error', flags });
    return HeadersStatus.StopIteration;
  }

  #count(): undefined {
    this.#stats.increment(ExtAuthzStats.at.disabled);
  }
}

/** A filter that only runs if the metadata matches, which earlier filters set in their callbacks. */
export class GatedFilter implements HttpFilter {
  readonly #stream: StreamControl;
  readonly #filter: AuthorizationFilter;
  readonly #rule: MetadataRule;
  readonly #disabled: DisabledRequests;
  #isOpen = false;

  constructor(stream: StreamControl, filter: AuthorizationFilter, rule: MetadataRule, disabled: DisabledRequests) {
    this.#stream = stream;
    this.#filter = filter;
    this.#rule = rule;
    this.#disabled = disabled;
  }

  decodeHeaders(headers: HeaderBlock, endStream: boolean): HeadersStatus {
    this.#isOpen = this.#rule.matches(this.#stream.info.dynamicMetadata);
    return this.#isOpen ? this.#filter.decodeHeaders(headers, endStream) : this.#disabled.apply(this.#stream);
  }

  decodeData(offset: number, length: number, endStream: boolean): DataStatus {
    return this.#isOpen ? this.#filter.decodeData(offset, length, endStream) : DataStatus.Continue;
  }

  decodeTrailers(): HeadersStatus {
    return this.#isOpen ? this.#filter.decodeTrailers() : HeadersStatus.Continue;
  }

  encodeHeaders(headers: HeaderBlock): HeadersStatus {
    return this.#isOpen ? this.#filter.encodeHeaders(headers) : HeadersStatus.Continue;
  }

  onDestroy(): void {
    this.#filter.onDestroy();
  }
}
