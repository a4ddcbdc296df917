// The part of the ext_authz filter that does not depend on the kind of service: holds a request until the service has answered, and
// applies the answer.

import {
  type Cluster,
  type ClusterReference,
  DataStatus,
  type HeaderBlock,
  type HeaderKey,
  HeadersStatus,
  type HttpFilter,
  headerKey,
  type LocalReply,
  Method,
  ResponseFlag,
  type Scope,
  type StreamControl,
  type Struct,
} from '../../../sdk.js';
import type { ClusterOutcomes } from '../../common/cluster-outcomes.js';
import { type BodyRules, BodyWait, type RequestBody } from './request-body.js';
import { type CheckResult, type NamedValue, shadowDecision } from './shadow-decision.js';
import { ExtAuthzStats } from './stats.js';

/** What applies with any kind of service. */
export interface CommonRules {
  readonly statusOnError: number;
  readonly allowsOnError: boolean;
  readonly marksAllowedOnError: boolean;
  /** A longer body of a denial is cut off. */
  readonly maxDeniedBytes: number;
  /** A denial counts as a response of the cluster of the request. */
  readonly chargesCluster: boolean;
  /** Decisions are recorded in the filter state under this key, and not enforced; undefined: they are enforced. */
  readonly shadowKey: string | undefined;
  readonly takesMetadata: boolean;
  /** The route is chosen again after a change of one of these fields. True: of any field; false: never. */
  readonly choosesRouteAgain: boolean | ReadonlySet<string>;
}

/** What applies to the requests of a route. */
export interface RequestRules {
  readonly extensions: ReadonlyMap<string, string>;
  /** Undefined: the service gets no bodies. */
  readonly body: BodyRules | undefined;
}

/** A field. Its value has one character per byte. */
export interface Field {
  readonly key: HeaderKey;
  readonly value: string;
}

/** What counts the decisions of a filter. */
export interface Counting {
  readonly stats: Scope;
  readonly outcomes: ClusterOutcomes<Outcome>;
  readonly nowMs: () => number;
}

export type Outcome = 'ok' | 'denied' | 'error' | 'failure_mode_allowed' | 'invalid';

export type FailureReply = Partial<Pick<LocalReply, 'status' | 'body' | 'editHeaders'>>;

const METADATA = 'envoy.filters.http.ext_authz';
const { at } = ExtAuthzStats;

export abstract class AuthorizationFilter implements HttpFilter {
  protected readonly stream: StreamControl;
  protected readonly request: RequestRules;
  /** The head of the request, which is held until the service has answered. */
  protected headers!: HeaderBlock;
  readonly #rules: CommonRules;
  readonly #counting: Counting;
  #bodyWait: BodyWait | undefined;
  #askedMs = 0;
  #isContinued = false;
  /** The cluster of the request, which counts the outcome too. */
  #target: Cluster | undefined;

  protected constructor(stream: StreamControl, rules: CommonRules, request: RequestRules, counting: Counting) {
    this.stream = stream;
    this.request = request;
    this.#rules = rules;
    this.#counting = counting;
  }

  /** Asks the service. The answer may arrive before this returns. */
  protected abstract ask(body: RequestBody | undefined): void;
  /** Adds the service's fields to the response. */
  abstract encodeHeaders(headers: HeaderBlock): HeadersStatus;
  /** Cancels the question. */
  abstract onDestroy(): void;

  decodeHeaders(headers: HeaderBlock, endStream: boolean): HeadersStatus {
    const { body } = this.request;
    this.headers = headers;
    this.#target = (this.stream.route()?.cluster as ClusterReference | undefined)?.current;
    // An upgrade may have a body, which the host gets with the request: it does not end the stream.
    const length = headers.upgrade ? headers.contentLength : Number.POSITIVE_INFINITY;
    const hasBody = !endStream && length > 0 && headers.method !== Method.Connect;
    if (body !== undefined && hasBody) this.#bodyWait = new BodyWait(this.stream, body, length);
    else this.#ask(undefined);
    return HeadersStatus.StopIteration;
  }

  decodeData(offset: number, length: number, endStream: boolean): DataStatus {
    const body = this.#bodyWait?.received(offset, length, endStream);
    if (body !== undefined) this.#ask(body);
    return this.#isContinued ? DataStatus.Continue : DataStatus.StopAndBuffer;
  }

  decodeTrailers(): HeadersStatus {
    if (this.#bodyWait !== undefined) this.#ask(this.#bodyWait.complete());
    return this.#isContinued ? HeadersStatus.Continue : HeadersStatus.StopIteration;
  }

  #ask(body: RequestBody | undefined): void {
    this.#bodyWait = undefined;
    // The rest of the body is not read meanwhile: it may exceed the buffer limit.
    this.stream.pauseRequest();
    this.#askedMs = this.#counting.nowMs();
    this.ask(body);
  }

  /** Adds what the service has answered to the dynamic metadata. */
  protected takeMetadata(metadata: Struct | undefined, isAllowed: boolean): void {
    if (metadata === undefined || !this.#rules.takesMetadata) return;
    const ext_authz_duration = Math.floor(this.#counting.nowMs() - this.#askedMs);
    const added = isAllowed ? { ...metadata, ext_authz_duration } : metadata;
    this.stream.info.ownDynamicMetadata().merge(METADATA, added);
  }

  /** The request goes on, as changed by the answer. `changed`: the names of the changed fields. */
  protected allowed(changed: readonly string[]): void {
    const { choosesRouteAgain: names, shadowKey } = this.#rules;
    this.#count('ok');
    if (shadowKey !== undefined) this.#record('OK', 200);
    this.#continue(typeof names === 'boolean' ? names && changed.length > 0 : changed.some((name) => names.has(name)));
  }

  /** Replies with a denial. `edit` adds its fields: its content-type replaces text/plain. `fields`: the same for shadow mode. */
  protected deny(
    status: number,
    body: string | Uint8Array,
    edit: (headers: HeaderBlock) => void,
    fields: () => readonly NamedValue[],
  ): void {
    const { chargesCluster, maxDeniedBytes, shadowKey } = this.#rules;
    this.#count('denied');
    // Envoy counts a denial as an internal response of the cluster.
    if (chargesCluster) this.#target?.responses.countResponse(status, true, undefined, false);
    if (shadowKey !== undefined) {
      this.#counting.stats.increment(at.shadow_denied);
      this.#record('DENIED', status, fields());
      return this.#continue(false);
    }
    this.#reply({ status, body: limited(body, maxDeniedBytes), details: 'ext_authz_denied', editHeaders: edit });
  }

  /** There is no decision. `reply`: what the service wants the client to get. */
  protected failed(reply: FailureReply = {}): void {
    const { allowsOnError, marksAllowedOnError, maxDeniedBytes, shadowKey, statusOnError } = this.#rules;
    const { body = '', status = statusOnError } = reply;
    this.#count('error');
    if (shadowKey !== undefined) {
      this.#counting.stats.increment(at.shadow_error);
      this.#record('ERROR', status);
      return this.#continue(false);
    }
    if (!allowsOnError)
      return this.#reply({ details: 'ext_authz_error', ...reply, status, body: limited(body, maxDeniedBytes) });
    if (marksAllowedOnError) this.headers.add(ALLOWED_ON_ERROR, 'true');
    this.#count('failure_mode_allowed');
    this.#continue(false);
  }

  /** The answer cannot be applied as it is. The request must not pass unchanged, whatever the rules for errors are. */
  protected refuse(isDenial: boolean): void {
    if (isDenial) this.#count('denied');
    this.#count('invalid');
    this.#reply({ status: 500, body: '', details: 'ext_authz_invalid' });
  }

  #continue(choosesRouteAgain: boolean): void {
    this.#isContinued = true;
    // First the head: resumed first, more body would be buffered behind it.
    if (choosesRouteAgain) this.stream.continueWithNewRoute();
    else this.stream.continueDecoding();
    this.stream.resumeRequest();
  }

  #record(result: CheckResult, status: number, fields?: readonly NamedValue[]): void {
    this.stream.info.ownFilterState().set(this.#rules.shadowKey!, shadowDecision(result, status, fields));
  }

  #count(outcome: Outcome): void {
    this.#counting.stats.increment(at[outcome]);
    if (this.#target !== undefined) this.#counting.outcomes.count(this.#target, outcome);
  }

  #reply(reply: Omit<LocalReply, 'flags'>): void {
    this.stream.sendLocalReply({ ...reply, flags: ResponseFlag.UnauthorizedExternalService });
  }
}

function limited(body: string | Uint8Array, maxBytes: number): string | Uint8Array {
  if (body.length * 3 <= maxBytes) return body;
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  return bytes.subarray(0, maxBytes);
}

const ALLOWED_ON_ERROR = headerKey('x-envoy-auth-failure-mode-allowed');
