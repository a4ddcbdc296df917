// The network filter ext_authz of one connection: holds the client's bytes until the service has answered.

import {
  FilterClose,
  type FilteredClient,
  FilterStatus,
  getLogger,
  messageOf,
  type NetworkFilter,
  ResponseFlag,
  type RunningCall,
  type Struct,
} from '../../../sdk.js';
import { Decision, decodeAnswer } from '../../http/ext-authz/check-response.js';
import { type ConnectionAuthorization, ConnectionAuthzStats } from './connection-authorization.js';

const METHOD = '/envoy.service.auth.v3.Authorization/Check';
/** Unless the service has a timeout. */
const TIMEOUT_MS = 200;
const METADATA = 'envoy.filters.network.ext_authz';

const logger = getLogger('ext_authz');
const { at } = ConnectionAuthzStats;

const enum State {
  New = 0,
  Asking = 1,
  Allowed = 2,
  Closed = 3,
}

export class NetworkExtAuthzFilter implements NetworkFilter {
  readonly #client: FilteredClient;
  readonly #authorization: ConnectionAuthorization;
  #state = State.New;
  #call: RunningCall | undefined;
  #askedMs = 0;
  /** The answer arrives while the question is sent. */
  #isStarting = false;

  constructor(client: FilteredClient, authorization: ConnectionAuthorization) {
    this.#client = client;
    this.#authorization = authorization;
  }

  /** As in Envoy, nothing is decided before the first byte: with a TCP proxy, the host is connected before that and may send. */
  onNewConnection(): FilterStatus {
    return FilterStatus.Continue;
  }

  onData(): FilterStatus {
    if (this.#state === State.New) this.#begin();
    return this.#state === State.Asking || this.#state === State.Closed ? FilterStatus.Stop : FilterStatus.Continue;
  }

  onDestroy(): void {
    this.#call?.cancel();
    this.#end(State.Closed);
  }

  #begin(): void {
    const { channel, nowMs, stats } = this.#authorization;
    if (!this.#authorization.appliesTo(this.#client)) return stats.increment(at.disabled);
    stats.increment(at.total);
    stats.increment(at.active);
    this.#state = State.Asking;
    this.#askedMs = nowMs();
    this.#isStarting = true;
    this.#call = channel.unary(METHOD, this.#authorization.questionFor(this.#client), TIMEOUT_MS, {
      onAnswer: (message) => this.#answered(message),
      onFailure: ({ code, details }) => this.#failed(`${code}, ${details}`),
    });
    this.#isStarting = false;
  }

  #end(state: State): void {
    this.#call = undefined;
    if (this.#state === State.Asking) this.#authorization.stats.decrement(at.active);
    this.#state = state;
  }

  #answered(message: Buffer): void {
    const { isShadow, nowMs, stats } = this.#authorization;
    let answer: ReturnType<typeof decodeAnswer>;
    try {
      answer = decodeAnswer(message);
    } catch (error) {
      return this.#failed(messageOf(error));
    }
    const isAllowed =
      answer.decision === Decision.Allowed || (answer.decision === Decision.Invalid && !answer.isDenial);
    if (answer.decision === Decision.Failed) return this.#failed('the service reports an error', answer.metadata);
    stats.increment(isAllowed ? at.ok : at.denied);
    const duration = Math.floor(nowMs() - this.#askedMs);
    const metadata = isAllowed ? { ...answer.metadata, ext_authz_duration: duration } : answer.metadata;
    if (metadata !== undefined) this.#client.addMetadata(METADATA, metadata);
    if (isAllowed || isShadow) this.#continue();
    else this.#close('ext_authz_denied');
  }

  #failed(reason: string, metadata?: Struct): void {
    const { allowsOnError, isShadow, stats } = this.#authorization;
    if (logger.isDebug) logger.debug(`no authorization of a connection: ${reason}`);
    stats.increment(at.error);
    if (metadata !== undefined) this.#client.addMetadata(METADATA, metadata);
    if (isShadow) return this.#continue();
    if (!allowsOnError) return this.#close('ext_authz_error');
    stats.increment(at.failure_mode_allowed);
    this.#continue();
  }

  #continue(): void {
    this.#end(State.Allowed);
    if (!this.#isStarting) this.#client.continueReading();
  }

  #close(details: string): void {
    this.#end(State.Closed);
    this.#authorization.stats.increment(at.cx_closed);
    this.#client.addResponseFlag(ResponseFlag.UnauthorizedExternalService);
    this.#client.setResponseCodeDetails(details);
    this.#client.setLocalCloseReason('ext_authz_close');
    this.#client.close(FilterClose.NoFlush, '');
  }
}
