// The ext_authz filter of one request with a gRPC service.

import type { GrpcChannel } from '../../../grpc-sdk.js';
import {
  getLogger,
  type HeaderBlock,
  HeadersStatus,
  messageOf,
  type RunningCall,
  type StreamControl,
  shownName,
} from '../../../sdk.js';
import { AuthorizationFilter, type CommonRules, type Counting, type RequestRules } from './authorization-filter.js';
import { type CheckRules, encodeCheck } from './check-request.js';
import {
  type Approval,
  applyChanges,
  changedPath,
  Decision,
  type DecodeRules,
  decodeAnswer,
  type HeaderChange,
  type Refusal,
} from './check-response.js';
import type { RequestBody } from './request-body.js';

const METHOD = '/envoy.service.auth.v3.Authorization/Check';
/** Unless the service has a timeout. */
const TIMEOUT_MS = 200;
const FORBIDDEN = 403;

/** The compiled configuration, one per filter chain and worker. */
export interface GrpcCheckRules extends CommonRules, CheckRules, DecodeRules {}

const logger = getLogger('ext_authz');
const NO_CHANGES: readonly HeaderChange[] = [];

export class GrpcCheckFilter extends AuthorizationFilter {
  readonly #rules: GrpcCheckRules;
  readonly #channel: GrpcChannel;
  #call: RunningCall | undefined;
  /** Changes of the response. */
  #toClient = NO_CHANGES;

  constructor(
    stream: StreamControl,
    rules: GrpcCheckRules,
    channel: GrpcChannel,
    request: RequestRules,
    counting: Counting,
  ) {
    super(stream, rules, request, counting);
    this.#rules = rules;
    this.#channel = channel;
  }

  protected ask(body: RequestBody | undefined): void {
    const { info } = this.stream;
    const routeMetadata = this.stream.route()?.metadata;
    const { extensions } = this.request;
    const question = encodeCheck(this.#rules, { info, head: this.headers, extensions, body, routeMetadata });
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
      answer = decodeAnswer(message, this.#rules);
    } catch (error) {
      return this.#fail(messageOf(error));
    }
    this.takeMetadata(answer.metadata, answer.decision === Decision.Allowed);
    switch (answer.decision) {
      case Decision.Allowed:
        return this.#allow(answer);
      case Decision.Denied:
        return this.#deny(answer);
      case Decision.Failed:
        return this.#failAs(answer);
      case Decision.Invalid:
        return this.#refuse(answer.field, answer.isDenial);
    }
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
    const changed = [...toHost.map(({ key }) => key.name), ...removed.map(({ name }) => name)];
    this.allowed(path === former ? changed : [...changed, ':path']);
  }

  #deny({ body, headers, status = FORBIDDEN }: Refusal): void {
    this.deny(
      status,
      body,
      (head) => applyChanges(head, headers),
      () => headers.map(({ key, value }) => ({ key: key.name, value })),
    );
  }

  #refuse(field: string, isDenial = false): void {
    if (logger.isDebug) logger.debug(`the authorization service changes '${shownName(field)}' to an invalid value`);
    this.refuse(isDenial);
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
