// The ext_authz filter of one request with a gRPC service.

import type { GrpcCall, GrpcChannel } from '../../../grpc-sdk.js';
import { getLogger, type HeaderBlock, HeadersStatus, messageOf, type StreamControl, shownName } from '../../../sdk.js';
import { AuthorizationFilter, type Counting, type ErrorRules } from './authorization-filter.js';
import { type CheckRules, encodeCheck } from './check-request.js';
import {
  type Approval,
  applyChanges,
  changedPath,
  Decision,
  decodeAnswer,
  type HeaderChange,
  type Refusal,
} from './check-response.js';

const METHOD = '/envoy.service.auth.v3.Authorization/Check';
const METADATA = 'envoy.filters.http.ext_authz';
/** Unless the service has a timeout. */
const TIMEOUT_MS = 200;
const FORBIDDEN = 403;

/** The compiled configuration, one per filter chain and worker. */
export interface GrpcCheckRules extends ErrorRules, CheckRules {
  readonly choosesRouteAgain: boolean;
  readonly takesMetadata: boolean;
}

const logger = getLogger('ext_authz');
const NO_CHANGES: readonly HeaderChange[] = [];

export class GrpcCheckFilter extends AuthorizationFilter {
  readonly #rules: GrpcCheckRules;
  readonly #channel: GrpcChannel;
  readonly #extensions: ReadonlyMap<string, string>;
  readonly #nowMs: () => number;
  #startMs = 0;
  #call: GrpcCall | undefined;
  /** Changes of the response. */
  #toClient = NO_CHANGES;

  constructor(
    stream: StreamControl,
    rules: GrpcCheckRules,
    channel: GrpcChannel,
    extensions: ReadonlyMap<string, string>,
    nowMs: () => number,
    counting: Counting,
  ) {
    super(stream, rules, counting);
    this.#rules = rules;
    this.#channel = channel;
    this.#extensions = extensions;
    this.#nowMs = nowMs;
  }

  protected ask(): void {
    const { info } = this.stream;
    const question = encodeCheck(this.#rules, { info, head: this.headers, extensions: this.#extensions });
    this.#startMs = this.#nowMs();
    this.#call = this.#channel.unary(
      METHOD,
      question,
      TIMEOUT_MS,
      {
        onAnswer: (message) => this.stream.run(() => this.#answered(message)),
        onFailure: ({ code, details }) => this.#fail(`${code}, ${details}`),
      },
      info,
    );
  }

  encodeHeaders(headers: HeaderBlock): HeadersStatus {
    applyChanges(headers, this.#toClient);
    return HeadersStatus.Continue;
  }

  onDestroy(): void {
    this.#call?.cancel();
    this.#call = undefined;
  }

  #answered(message: Buffer): void {
    let answer: ReturnType<typeof decodeAnswer>;
    try {
      answer = decodeAnswer(message);
    } catch (error) {
      return this.#fail(messageOf(error));
    }
    this.#takeMetadata(answer);
    switch (answer.decision) {
      case Decision.Allowed:
        return this.#allow(answer);
      case Decision.Denied:
        return this.deny(answer.status ?? FORBIDDEN, answer.body, (head) => applyChanges(head, answer.headers));
      case Decision.Failed:
        return this.#failAs(answer);
      case Decision.Invalid:
        return this.#refuse(answer.field);
    }
  }

  #takeMetadata({ decision, metadata }: ReturnType<typeof decodeAnswer>): void {
    if (metadata === undefined || !this.#rules.takesMetadata) return;
    const ext_authz_duration = Math.floor(this.#nowMs() - this.#startMs);
    const added = decision === Decision.Allowed ? { ...metadata, ext_authz_duration } : metadata;
    this.stream.info.ownDynamicMetadata().merge(METADATA, added);
  }

  #allow(approval: Approval): void {
    const { headers } = this;
    const { removed, toClient, toHost } = approval;
    const former = headers.pathText();
    const path = changedPath(former, approval);
    if (path === undefined) return this.#refuse(':path');
    if (path !== former) headers.setPath(path);
    applyChanges(headers, toHost);
    for (const key of removed) headers.remove(key);
    this.#toClient = toClient;
    const hasChanges = path !== former || toHost.length > 0 || removed.length > 0;
    this.allowed(this.#rules.choosesRouteAgain && hasChanges);
  }

  #refuse(field: string): void {
    if (logger.isDebug) logger.debug(`the authorization service changes '${shownName(field)}' to an invalid value`);
    this.refuse();
  }

  #fail(reason: string): void {
    if (logger.isDebug) logger.debug(`no authorization by the gRPC service: ${reason}`);
    this.stream.run(() => this.failed());
  }

  /** The service has answered that it has failed, and what the client gets. */
  #failAs({ body, headers, status }: Refusal): void {
    logger.debug('the authorization service reports an error');
    const editHeaders = (head: HeaderBlock) => applyChanges(head, headers);
    this.failed({ body, editHeaders, ...(status !== undefined && { status }) });
  }
}
