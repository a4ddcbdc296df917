// The ext_proc filter of one request.

import type { Struct } from '../../../../config/generated/api.js';
import { filledStruct } from '../../../messages/proto-struct.js';
import {
  type DataStatus,
  getLogger,
  type HeaderBlock,
  type HeadersStatus,
  type HttpFilter,
  Method,
  messageOf,
  NoRoomError,
  oneWord,
  type StreamControl,
  Timer,
} from '../../../sdk.js';
import { type Answer, type CommonResponse, decodeAnswer, type ImmediateResponse, type ModeOverride } from './answer.js';
import { CallRecord, type Effect } from './call-record.js';
import { type MessageOwner, type Mistake, Opened, ProcessedMessage, Status } from './message.js';
import { hasMoreThanHeads, isSameMode, overriddenMode } from './modes.js';
import type { ProcessorEvents, ProcessorStream } from './processor-stream.js';
import { finishQuestion, type Part } from './question.js';
import { RouteAction, type Rules } from './rules.js';
import { RequestSide, ResponseSide } from './side.js';
import { ExtProcStats } from './stats.js';

const logger = getLogger('ext_proc');
const { at } = ExtProcStats;
const GATEWAY_TIMEOUT = 504;
const MAX_STATUS = 999;

export class ExtProcFilter implements HttpFilter, MessageOwner, ProcessorEvents {
  readonly rules: Rules;
  readonly #stream: StreamControl;
  readonly #record: CallRecord;
  readonly #request: ProcessedMessage;
  readonly #response: ProcessedMessage;
  #processor: ProcessorStream | undefined;
  #isComplete = false;
  /** The client has got an answer of the filter. */
  #hasReplied = false;
  #isFirstQuestion = true;
  /** The head of the response, in its callback. */
  #responseHead: HeaderBlock | undefined;
  #hasRequestAttributes = false;
  #hasResponseAttributes = false;
  /** Messages that hold back answers. */
  #holding = 0;

  constructor(stream: StreamControl, rules: Rules) {
    this.rules = rules;
    this.#stream = stream;
    this.#record = new CallRecord(rules.cluster);
    this.#request = new ProcessedMessage(this, new RequestSide(stream, rules.bufferLimit), rules.mode.request);
    this.#response = new ProcessedMessage(this, new ResponseSide(stream, rules.bufferLimit), rules.mode.response);
    stream.info.ownFilterState().set(rules.stateKey, this.#record);
  }

  // ── HttpFilter ───────────────────────────────────────────────────────────────────────────────────────────────────

  decodeHeaders(headers: HeaderBlock, endStream: boolean): HeadersStatus {
    // Attributes and the metadata of the call are read from it, also when only a body or the response is processed.
    if (!headers.retain()) throw new NoRoomError('no room in the arena for a request head that is processed');
    this.#response.isOfConnect = headers.method === Method.Connect;
    return this.#request.headers(headers, endStream);
  }

  decodeData(offset: number, length: number, endStream: boolean): DataStatus {
    return this.#request.data(offset, length, endStream);
  }

  decodeTrailers(trailers: HeaderBlock): HeadersStatus {
    return this.#request.trailers(trailers);
  }

  encodeHeaders(headers: HeaderBlock, endStream: boolean): HeadersStatus {
    this.#responseHead = headers;
    const status = this.#response.headers(headers, endStream);
    this.#responseHead = undefined;
    return status;
  }

  encodeData(offset: number, length: number, endStream: boolean): DataStatus {
    return this.#response.data(offset, length, endStream);
  }

  encodeTrailers(trailers: HeaderBlock): HeadersStatus {
    return this.#response.trailers(trailers);
  }

  onRequestBlocked(): void {
    this.#request.blocked(true);
  }

  onRequestDrained(): void {
    this.#request.blocked(false);
  }

  onResponseBlocked(): void {
    this.#response.blocked(true);
  }

  onResponseDrained(): void {
    this.#response.blocked(false);
  }

  onDestroy(): void {
    const processor = this.#processor;
    if (this.rules.isObserving && processor !== undefined) {
      this.#processor = undefined;
      closeLater(processor, this.rules);
    }
    this.#end(Status.Aborted);
  }

  // ── MessageOwner ─────────────────────────────────────────────────────────────────────────────────────────────────

  get isComplete(): boolean {
    return this.#isComplete;
  }

  open(): Opened {
    if (this.#isComplete) return this.#hasReplied ? Opened.Failed : Opened.Skipped;
    if (this.#processor !== undefined) return Opened.Yes;
    this.#processor = this.rules.start(this.#stream.info, this.#record, this);
    // An event of the call may have ended the processing.
    if (this.#processor === undefined) return this.#hasReplied ? Opened.Failed : Opened.Skipped;
    if (!this.rules.isHttp) this.rules.stats.increment(at.streams_started);
    return Opened.Yes;
  }

  ask(isRequest: boolean): void {
    const { mode, question, sendsEarly, stats } = this.rules;
    const protocol = this.#isFirstQuestion
      ? { request: mode.request.body, response: mode.response.body, sendsEarly }
      : undefined;
    this.#isFirstQuestion = false;
    stats.increment(at.stream_msgs_sent);
    const { info } = this.#stream;
    this.#processor!.send(finishQuestion(question, info, protocol, this.#attributes(isRequest)));
  }

  /** Returns the attributes for the first question about a message. */
  #attributes(isRequest: boolean): Struct | undefined {
    const { requestAttributes, responseAttributes } = this.rules;
    const isFirst = isRequest ? !this.#hasRequestAttributes : !this.#hasResponseAttributes;
    if (isRequest) this.#hasRequestAttributes = true;
    else this.#hasResponseAttributes = true;
    if (!isFirst) return undefined;
    const { info } = this.#stream;
    return isRequest ? requestAttributes.read(info, undefined) : responseAttributes.read(info, this.#responseHead);
  }

  get isProcessorFull(): boolean {
    return (this.#processor?.queuedBytes ?? 0) > this.rules.maxQueuedBytes;
  }

  ended(isRequest: boolean, part: Part, ms: number, status: Status): void {
    this.#record.ended(isRequest, part, ms, status);
  }

  affected(isRequest: boolean, part: Part, effect: Effect): void {
    this.#record.affected(isRequest, part, effect);
  }

  onRejected(): void {
    this.rules.stats.increment(at.rejected_header_mutations);
  }

  chooseRoute(): boolean {
    return this.#stream.chooseRouteAgain();
  }

  choosesRoute({ clear_route_cache: isAsked, header_mutation: mutation }: CommonResponse): boolean {
    const { routeAction, stats } = this.rules;
    if (mutation === undefined) {
      if (isAsked === true) stats.increment(at.clear_route_cache_ignored);
      return false;
    }
    if (routeAction === RouteAction.Always) return true;
    if (routeAction === RouteAction.Never && isAsked === true) stats.increment(at.clear_route_cache_disabled);
    return routeAction === RouteAction.AsAnswered && isAsked === true;
  }

  timedOut(): void {
    this.#stream.run(() => {
      if (this.#isComplete) return;
      this.rules.stats.increment(at.message_timeouts);
      if (this.#mayFailOpen) return this.#failOpen(Status.DeadlineExceeded);
      this.#reply(Status.DeadlineExceeded, GATEWAY_TIMEOUT, 'ext_proc_error_per-message_timeout_exceeded');
    });
  }

  holdAnswers(isHeld: boolean): void {
    this.#holding += isHeld ? 1 : -1;
    this.#request.holdTimeout(this.#holding > 0);
    this.#response.holdTimeout(this.#holding > 0);
    if (this.#holding > 0) this.#processor?.pause();
    else this.#processor?.resume();
  }

  // ── ProcessorEvents ──────────────────────────────────────────────────────────────────────────────────────────────

  onAnswer(message: Uint8Array): void {
    this.#stream.run(() => this.#answered(message));
  }

  onClosed(): void {
    this.#stream.run(() => {
      const { stats } = this.rules;
      stats.increment(at.server_half_closed);
      stats.increment(at.streams_closed);
      this.#processor = undefined;
      if (this.#isComplete) return;
      // Parts of a body that only the processor has are lost.
      if (this.#isInConversation) this.#failed(0, 'via_upstream');
      else this.#abandon(Status.Aborted);
    });
  }

  get #isInConversation(): boolean {
    return this.#request.isInConversation || this.#response.isInConversation;
  }

  get #mayFailOpen(): boolean {
    return this.rules.failsOpen && !this.#isInConversation;
  }

  onFailed(code: number, details: string): void {
    this.#stream.run(() => {
      this.rules.stats.increment(at.server_half_closed);
      this.#processor = undefined;
      this.#failed(code, details);
    });
  }

  onRefused(reason: string): void {
    this.#stream.run(() => {
      this.rules.stats.increment(at.http_not_ok_resp_received);
      if (logger.isDebug) logger.debug(`the processor has not answered: ${reason}`);
      if (this.#isComplete) return;
      if (this.rules.failsOpen) return this.#failOpen(Status.Aborted);
      this.#reply(Status.Aborted, this.rules.errorStatus, 'ext_proc_error_HTTP_ERROR');
    });
  }

  onDrained(): void {
    this.#stream.run(() => {
      this.#request.processorDrained();
      this.#response.processorDrained();
    });
  }

  // ── Answers ──────────────────────────────────────────────────────────────────────────────────────────────────────

  #answered(message: Uint8Array): void {
    if (this.#isComplete || this.rules.isObserving) return;
    let answer: Answer;
    try {
      answer = decodeAnswer(message);
    } catch (error) {
      if (logger.isDebug) logger.debug(`the processor has sent an invalid message: ${messageOf(error)}`);
      this.#closeStream(false);
      return this.#failed(Status.Internal, 'via_upstream');
    }
    if (answer.override_message_timeout !== undefined) return this.#extend(answer.override_message_timeout);
    this.#overrideMode(answer.mode_override);
    const mistake = this.#apply(answer);
    const { stats } = this.rules;
    if (mistake?.status === Status.FailedPrecondition) {
      stats.increment(at.spurious_msgs_received);
      if (this.#mayFailOpen) return this.#failOpen(mistake.status);
    } else stats.increment(at.stream_msgs_received);
    if (mistake === undefined) return this.#endIfDone();
    if (logger.isDebug) logger.debug(`an answer of the processor is invalid: ${mistake.details}`);
    this.#reply(mistake.status, this.rules.errorStatus, mistake.details);
  }

  /** As in Envoy, the stream ends after the last answer that is needed: the rest of the response may take long. */
  #endIfDone(): void {
    if (this.#isComplete || this.#request.needsProcessor || this.#response.needsProcessor) return;
    this.#isComplete = true;
    this.#closeStream(true);
  }

  #apply(answer: Answer): Mistake | undefined {
    this.#takeMetadata(answer);
    if (answer.request_headers !== undefined) return this.#request.headersAnswered(answer.request_headers);
    if (answer.response_headers !== undefined) return this.#response.headersAnswered(answer.response_headers);
    if (answer.request_body !== undefined) return this.#request.bodyAnswered(answer.request_body);
    if (answer.response_body !== undefined) return this.#response.bodyAnswered(answer.response_body);
    if (answer.request_trailers !== undefined) return this.#request.trailersAnswered(answer.request_trailers);
    if (answer.response_trailers !== undefined) return this.#response.trailersAnswered(answer.response_trailers);
    if (answer.immediate_response === undefined) return UNKNOWN;
    if (this.rules.refusesImmediate) return NOT_ALLOWED;
    this.#replyAsAsked(answer.immediate_response);
    return undefined;
  }

  /** As in Envoy, only an answer about a head changes the mode. */
  #overrideMode(override: ModeOverride | undefined): void {
    const { mode: configured, overrides } = this.rules;
    if (override === undefined || overrides === undefined) return;
    const isRequest = this.#request.isAwaitingHeaders;
    const mode = overriddenMode(override, configured);
    // As in Envoy, bodies are not sent by HTTP.
    if (
      mode === undefined ||
      (this.rules.isHttp && hasMoreThanHeads(mode)) ||
      !(isRequest || this.#response.isAwaitingHeaders)
    )
      return;
    if (overrides.length > 0 && !overrides.some((each) => isSameMode(each, mode))) return;
    if (isRequest) this.#request.mode = mode.request;
    this.#response.mode = mode.response;
  }

  #takeMetadata({ dynamic_metadata: metadata }: Answer): void {
    const { receives } = this.rules;
    const struct = receives.size === 0 ? undefined : filledStruct(metadata);
    if (struct === undefined) return;
    for (const [namespace, value] of Object.entries(struct)) {
      if (!receives.has(namespace)) continue;
      const isStruct = typeof value === 'object' && value !== null && !Array.isArray(value);
      this.#stream.info.ownDynamicMetadata().merge(namespace, isStruct ? (value as Struct) : {});
    }
  }

  #extend({ nanos = 0, seconds = 0 }: NonNullable<Answer['override_message_timeout']>): void {
    const { maxTimeoutMs, stats } = this.rules;
    const ms = Math.floor(seconds * 1000 + nanos / 1e6);
    // Both are tried: at most one has an open question.
    const isValid = ms >= 1 && ms <= maxTimeoutMs;
    const isExtended = isValid && [this.#request.extend(ms), this.#response.extend(ms)].includes(true);
    stats.increment(isExtended ? at.override_message_timeout_received : at.override_message_timeout_ignored);
  }

  // ── Ends of the processing ───────────────────────────────────────────────────────────────────────────────────────

  #failed(code: number, details: string): void {
    this.rules.stats.increment(at.streams_failed);
    if (logger.isDebug) logger.debug(`the stream to the processor has failed: ${code}, ${details}`);
    if (this.#isComplete) return;
    if (this.#isFirstQuestion) this.#record.statusBeforeFirstQuestion = code;
    if (this.#mayFailOpen) {
      // As in Envoy, which treats the failure as a regular end too.
      this.rules.stats.increment(at.streams_closed);
      this.rules.stats.increment(at.server_half_closed);
      return this.#failOpen(code);
    }
    this.#reply(code, this.rules.errorStatus, `ext_proc_error_gRPC_error_${code}{${details}}`);
  }

  #failOpen(status: number): void {
    this.rules.stats.increment(at.failure_mode_allowed);
    this.#record.hasFailedOpen = true;
    this.#closeStream(true);
    this.#abandon(status);
  }

  /** Both messages pass without the processor. */
  #abandon(status: number): void {
    this.#isComplete = true;
    this.#request.abandon(status);
    this.#response.abandon(status);
  }

  /** Answers because of a mistake or a failure. */
  #reply(status: number, code: number, details: string): void {
    this.#end(status);
    this.#send(code, details, '', undefined, undefined);
  }

  #replyAsAsked({ body, details = '', grpc_status: grpc, headers, status }: ImmediateResponse): void {
    const code = status?.code ?? 0;
    this.#record.hasImmediateResponse = true;
    this.#end(Status.Ok);
    const edit =
      headers &&
      ((head: HeaderBlock) => {
        const how = { kind: 'response', isReplacing: false, takesLength: false } as const;
        const mistake = this.rules.change(head, headers, { ...how, onRejected: () => this.onRejected() });
        if (mistake !== undefined) logger.debug(`changes of an immediate response are invalid: ${mistake}`);
      });
    // As in Envoy, a status that cannot be sent becomes 200.
    this.#send(code >= 200 && code <= MAX_STATUS ? code : 200, details, body ?? '', grpc?.status, edit);
  }

  #send(
    status: number,
    details: string,
    body: string | Uint8Array,
    grpcStatus: number | undefined,
    editHeaders: ((head: HeaderBlock) => void) | undefined,
  ): void {
    this.#hasReplied = true;
    this.rules.stats.increment(at.immediate_responses_sent);
    this.#stream.sendLocalReply({
      status,
      body,
      details: oneWord(details),
      flags: 0,
      grpcStatus,
      ...(editHeaders && { editHeaders }),
    });
  }

  /** Ends all questions and the stream. */
  #end(status: number): void {
    this.#isComplete = true;
    this.#request.end(status);
    this.#response.end(status);
    this.#closeStream(true);
  }

  #closeStream(isCounted: boolean): void {
    if (this.#processor === undefined) return;
    if (isCounted && !this.rules.isHttp) this.rules.stats.increment(at.streams_closed);
    this.#processor.close();
    this.#processor = undefined;
  }
}

/** Ends the stream to an observer after what it has been sent. */
function closeLater(processor: ProcessorStream, { closeAfterMs, isHttp, stats, timers }: Rules): void {
  processor.end();
  const close = () => {
    if (!isHttp) stats.increment(at.streams_closed);
    processor.close();
  };
  timers.reschedule(new Timer(close, (act: () => void) => act()), closeAfterMs);
}

const UNKNOWN: Mistake = { status: Status.FailedPrecondition, details: 'unhandled message' };
const NOT_ALLOWED: Mistake = {
  status: Status.FailedPrecondition,
  details: 'unhandled immediate response due to config disabled it',
};
