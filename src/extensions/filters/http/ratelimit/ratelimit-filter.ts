// The rate limit filter of one request: asks the service about the descriptors of the request, and applies its answer.

import {
  addDescriptors,
  type Cluster,
  type ClusterReference,
  type DescribedRequest,
  type HeaderBlock,
  HeadersStatus,
  type HttpFilter,
  headerKey,
  NoRoomError,
  type RateLimitDescriptor,
  type RateLimitSelection,
  ResponseFlag,
  type Route,
  RouteKind,
  type RunningCall,
  type StreamControl,
} from '../../../sdk.js';
import type { AddedField, LimitAnswer, LimitStatus } from '../../common/rate-limit/limit-answer.js';
import { addLimitHeaders, addRetryAfter } from './limit-headers.js';
import type { LimitFilterRules, Outcome, RouteRules } from './rules.js';

const INTERNAL = headerKey('x-envoy-internal');
const CONTENT_TYPE = headerKey('content-type');
const LIMITED = headerKey('x-envoy-ratelimited');
/** The object of the filter state with the hits of a request. */
const HITS = 'envoy.ratelimit.hits_addend';
const NO_DESCRIPTORS: readonly RateLimitDescriptor[] = [];
const NO_FIELDS: readonly AddedField[] = [];
const NO_STATUSES: readonly LimitStatus[] = [];

export class RateLimitFilter implements HttpFilter {
  readonly #stream: StreamControl;
  readonly #rules: LimitFilterRules;
  readonly #ofRoute: RouteRules | undefined;
  /** The head of the request. Undefined: nothing is limited. */
  #headers: HeaderBlock | undefined;
  #route!: Route<ClusterReference>;
  #cluster!: Cluster;
  #descriptors = NO_DESCRIPTORS;
  #call: RunningCall | undefined;
  #isAsking = false;
  /** For the response. */
  #toClient = NO_FIELDS;
  #statuses = NO_STATUSES;
  #isOver = false;

  constructor(stream: StreamControl, rules: LimitFilterRules, ofRoute: RouteRules | undefined) {
    this.#stream = stream;
    this.#rules = rules;
    this.#ofRoute = ofRoute;
  }

  decodeHeaders(headers: HeaderBlock): HeadersStatus {
    const { onlyInternal } = this.#rules;
    const route = this.#stream.route() as Route<ClusterReference> | undefined;
    const cluster = route?.kind === RouteKind.Forward ? route.cluster?.current : undefined;
    if (cluster === undefined) return HeadersStatus.Continue;
    if (onlyInternal !== undefined && onlyInternal !== (headers.get(INTERNAL) === 'true'))
      return HeadersStatus.Continue;
    this.#headers = headers;
    this.#route = route!;
    this.#cluster = cluster;
    if (this.#asksAtEnd() && !headers.retain()) throw new NoRoomError('no room for a head that is limited at its end');
    this.#descriptors = this.#describe(this.#rules.now);
    if (this.#descriptors.length === 0) return HeadersStatus.Continue;
    this.#stream.pauseRequest();
    this.#isAsking = true;
    this.#call = this.#ask(this.#descriptors, (answer) => this.#stream.run(() => this.#answered(answer)));
    return HeadersStatus.StopIteration;
  }

  encodeHeaders(headers: HeaderBlock): HeadersStatus {
    this.#addToResponse(headers);
    return HeadersStatus.Continue;
  }

  onDestroy(): void {
    this.#call?.cancel();
    this.#call = undefined;
    if (this.#isAsking || this.#headers === undefined || !this.#asksAtEnd()) return;
    const descriptors = this.#describe(this.#rules.atEnd);
    // Only the service counts: nothing waits for the answer.
    if (descriptors.length > 0) this.#ask(descriptors, () => {});
  }

  #asksAtEnd(): boolean {
    const own = this.#ofRoute?.limits ?? this.#rules.limits;
    return own === undefined ? this.#route.rateLimits?.areAtEnd === true : own.some(({ isAtEnd }) => isAtEnd);
  }

  #describe(selection: RateLimitSelection): readonly RateLimitDescriptor[] {
    const own = this.#ofRoute?.limits ?? this.#rules.limits;
    const { metadata: routeMetadata, rateLimits } = this.#route;
    if (own === undefined && rateLimits === undefined) return NO_DESCRIPTORS;
    const request: DescribedRequest = {
      headers: this.#headers!,
      info: this.#stream.info,
      clusterName: this.#route.clusterName,
      clusterMetadata: this.#cluster.spec.metadata,
      routeMetadata,
      localCluster: this.#rules.localCluster,
    };
    if (own === undefined) return rateLimits!.descriptors(selection, this.#ofRoute?.ofHost ?? 'OVERRIDE', request);
    const found: RateLimitDescriptor[] = [];
    addDescriptors(own, { ...selection, stage: 0 }, request, found);
    return found;
  }

  #ask(
    descriptors: readonly RateLimitDescriptor[],
    onAnswer: (answer: LimitAnswer | undefined) => void,
  ): RunningCall | undefined {
    const { info } = this.#stream;
    const domain = this.#ofRoute?.domain ?? this.#rules.domain;
    const hits = hitsIn(info.filterState?.get(HITS)?.text);
    return this.#rules.service.ask({ domain, descriptors, hits }, onAnswer, info);
  }

  #answered(answer: LimitAnswer | undefined): void {
    this.#call = undefined;
    this.#isAsking = false;
    if (answer === undefined) return this.#failed();
    const rules = this.#rules;
    if (answer.metadata !== undefined) this.#stream.info.ownDynamicMetadata().merge(rules.metadata, answer.metadata);
    this.#toClient = answer.toClient;
    this.#statuses = answer.statuses;
    this.#isOver = answer.isOver;
    this.#count(answer.isOver ? 'over_limit' : 'ok');
    // Envoy counts it as an internal response of the cluster, whether it is sent or not.
    if (answer.isOver) this.#cluster.responses.countResponse(rules.limitedStatus, true, undefined, false);
    if (answer.isOver && rules.enforced.isHit(rules.random)) return this.#refuse(answer.body);
    for (const { key, value } of answer.toHost) this.#headers!.add(key, value);
    this.#continue();
  }

  #refuse(body: Uint8Array): void {
    const { hasRetryAfter, limitedGrpcStatus, limitedStatus, toLimited } = this.#rules;
    this.#stream.sendLocalReply({
      status: limitedStatus,
      body,
      details: 'request_rate_limited',
      flags: ResponseFlag.RateLimited,
      grpcStatus: limitedGrpcStatus,
      editHeaders: (headers) => {
        const statuses = this.#statuses;
        if (this.#toClient.some(({ key }) => key.name === CONTENT_TYPE.name)) headers.remove(CONTENT_TYPE);
        this.#addToResponse(headers);
        if (hasRetryAfter) addRetryAfter(headers, statuses);
        toLimited?.applyToResponse(headers, this.#stream.info);
      },
    });
  }

  #failed(): void {
    const { deniedOnError, errorStatus, random } = this.#rules;
    this.#count('error');
    if (!deniedOnError.isHit(random)) {
      this.#count('failure_mode_allowed');
      return this.#continue();
    }
    this.#stream.sendLocalReply({
      status: errorStatus,
      body: '',
      details: 'rate_limiter_error',
      flags: ResponseFlag.RateLimitServiceError,
    });
  }

  #continue(): void {
    // First the head: resumed first, more body would be buffered behind it.
    this.#stream.continueDecoding();
    this.#stream.resumeRequest();
  }

  /** Adds the fields of the answer, once. */
  #addToResponse(headers: HeaderBlock): void {
    for (const { key, value } of this.#toClient) headers.add(key, value);
    if (this.#isOver && this.#rules.hasLimitedHeader) headers.set(LIMITED, 'true');
    if (this.#statuses.length > 0)
      addLimitHeaders(headers, this.#statuses, this.#descriptors, this.#rules.hasLimitHeaders);
    this.#toClient = NO_FIELDS;
    this.#statuses = NO_STATUSES;
    this.#isOver = false;
  }

  #count(outcome: Outcome): void {
    this.#rules.outcomes.count(this.#cluster, outcome);
  }
}

/** Returns the hits of an object of the filter state; 0: there is none, or it has another kind of content. */
function hitsIn(text = ''): number {
  const hits = /^\d{1,10}$/.test(text) ? Number(text) : 0;
  return hits < 2 ** 32 ? hits : 0;
}
