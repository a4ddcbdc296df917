// The part of the ext_authz filter that does not depend on the kind of service: holds a request until the service has answered, and
// applies the answer.

import {
  type Cluster,
  type ClusterReference,
  type HeaderBlock,
  type HeaderKey,
  HeadersStatus,
  type HttpFilter,
  headerKey,
  type LocalReply,
  ResponseFlag,
  type Scope,
  type StreamControl,
} from '../../../sdk.js';
import type { ClusterOutcomes, Outcome } from './cluster-outcomes.js';
import { ExtAuthzStats } from './stats.js';

/** What happens when there is no answer. */
export interface ErrorRules {
  readonly statusOnError: number;
  readonly allowsOnError: boolean;
  readonly marksAllowedOnError: boolean;
}

/** A field. Its value has one character per byte. */
export interface Field {
  readonly key: HeaderKey;
  readonly value: string;
}

/** What counts the decisions of a filter. */
export interface Counting {
  readonly stats: Scope;
  readonly outcomes: ClusterOutcomes;
}

export type FailureReply = Partial<Pick<LocalReply, 'status' | 'body' | 'editHeaders'>>;

const { at } = ExtAuthzStats;

export abstract class AuthorizationFilter implements HttpFilter {
  protected readonly stream: StreamControl;
  /** The head of the request, which is held until the service has answered. */
  protected headers!: HeaderBlock;
  readonly #rules: ErrorRules;
  readonly #counting: Counting;
  /** The cluster of the request, which counts the outcome too. */
  #target: Cluster | undefined;

  protected constructor(stream: StreamControl, rules: ErrorRules, counting: Counting) {
    this.stream = stream;
    this.#rules = rules;
    this.#counting = counting;
  }

  /** Asks the service. The answer may arrive before this returns. */
  protected abstract ask(): void;
  /** Adds the service's fields to the response. */
  abstract encodeHeaders(headers: HeaderBlock): HeadersStatus;
  /** Cancels the question. */
  abstract onDestroy(): void;

  decodeHeaders(headers: HeaderBlock): HeadersStatus {
    this.headers = headers;
    this.#target = (this.stream.route()?.cluster as ClusterReference | undefined)?.current;
    // The body is not read meanwhile: it may exceed the buffer limit.
    this.stream.pauseRequest();
    this.ask();
    return HeadersStatus.StopIteration;
  }

  /** The request goes on, as changed by the answer. */
  protected allowed(choosesRouteAgain = false): void {
    this.#count('ok');
    this.#continue(choosesRouteAgain);
  }

  /** Replies with a denial. `edit` adds its fields: its content-type replaces text/plain. */
  protected deny(status: number, body: string | Uint8Array, edit: (headers: HeaderBlock) => void): void {
    this.#count('denied');
    // Envoy counts a denial as an internal response of the cluster.
    this.#target?.responses.countResponse(status, true, undefined, false);
    this.#reply({ status, body, details: 'ext_authz_denied', editHeaders: edit });
  }

  /** There is no decision. `reply`: what the service wants the client to get. */
  protected failed(reply: FailureReply = {}): void {
    const { allowsOnError, marksAllowedOnError, statusOnError } = this.#rules;
    this.#count('error');
    if (!allowsOnError) return this.#reply({ status: statusOnError, body: '', details: 'ext_authz_error', ...reply });
    if (marksAllowedOnError) this.headers.add(ALLOWED_ON_ERROR, 'true');
    this.#count('failure_mode_allowed');
    this.#continue(false);
  }

  /** The request cannot be changed as the answer demands. It must not pass unchanged, whatever the rules for errors are. */
  protected refuse(): void {
    this.#count('invalid');
    this.#reply({ status: 500, body: '', details: 'ext_authz_invalid' });
  }

  #continue(choosesRouteAgain: boolean): void {
    // First the head: resumed first, more body would be buffered behind it.
    if (choosesRouteAgain) this.stream.continueWithNewRoute();
    else this.stream.continueDecoding();
    this.stream.resumeRequest();
  }

  #count(outcome: Outcome): void {
    this.#counting.stats.increment(at[outcome]);
    if (this.#target !== undefined) this.#counting.outcomes.count(this.#target, outcome);
  }

  #reply(reply: Omit<LocalReply, 'flags'>): void {
    this.stream.sendLocalReply({ ...reply, flags: ResponseFlag.UnauthorizedExternalService });
  }
}

const ALLOWED_ON_ERROR = headerKey('x-envoy-auth-failure-mode-allowed');
