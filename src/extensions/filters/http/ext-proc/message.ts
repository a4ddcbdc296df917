// One message of a stream, the request or the response, on its way through the processor.

import { DataStatus, type HeaderBlock, HeadersStatus, headerKey, Timer } from '../../../sdk.js';
import type { CommonResponse, HeaderMutation, PartAnswer, TrailersAnswer } from './answer.js';
import { Effect } from './call-record.js';
import { hasNoBody } from './head-changes.js';
import { BodyMode, hasOpenLength, type MessageMode } from './modes.js';
import { PieceQueue } from './piece-queue.js';
import { beginBody, beginFields, Part } from './question.js';
import type { Rules } from './rules.js';
import type { Side } from './side.js';

/** The gRPC statuses that the filter records for its questions. */
export const enum Status {
  Ok = 0,
  InvalidArgument = 3,
  DeadlineExceeded = 4,
  FailedPrecondition = 9,
  Aborted = 10,
  Internal = 13,
}

/** What the processor has been asked about behind the head, and has not answered. */
const enum Asked {
  Nothing = 0,
  /** Pieces of the body, which its answers replace as it likes. */
  Conversation = 1,
  /** Pieces of the body, each with an answer of its own. */
  Pieces = 2,
  /** The whole body, which the stream holds. */
  Body = 3,
  /** The beginning of the body. */
  Beginning = 4,
  Trailers = 5,
}

/** Why an answer cannot be applied. */
export interface Mistake {
  readonly status: Status;
  /** For %RESPONSE_CODE_DETAILS%. */
  readonly details: string;
}

export const enum Opened {
  /** The stream to the processor is open. */
  Yes = 0,
  /** The message passes without it. */
  Skipped = 1,
  /** The client has got an answer. */
  Failed = 2,
}

/** The filter of the message. */
export interface MessageOwner {
  readonly rules: Rules;
  /** Nothing more is sent to the processor. */
  readonly isComplete: boolean;
  open(): Opened;
  /** Sends the question that was begun. */
  ask(isRequest: boolean): void;
  ended(isRequest: boolean, part: Part, ms: number, status: Status): void;
  affected(isRequest: boolean, part: Part, effect: Effect): void;
  onRejected(): void;
  /** Chooses the route again. Returns false if the request got an answer. */
  chooseRoute(): boolean;
  /** Whether the answer chooses the route again; counts it. */
  choosesRoute(answer: CommonResponse): boolean;
  timedOut(): void;
  /** The processor does not take its questions as fast as they come. */
  readonly isProcessorFull: boolean;
  /** Stops and resumes the answers of the processor. */
  holdAnswers(isHeld: boolean): void;
}

const SPURIOUS: Mistake = { status: Status.FailedPrecondition, details: 'spurious message' };
const WRONG_LENGTH: Mistake = {
  status: Status.Internal,
  details: 'mismatch between content length and the length of the mutated body',
};
const NOT_DUPLEX: Mistake = {
  status: Status.FailedPrecondition,
  details: 'spurious message: streamed_response is received while body_mode_ is not FULL_DUPLEX_STREAMED',
};
const NOT_STREAMED: Mistake = {
  status: Status.FailedPrecondition,
  details: 'spurious message: Normal body mutation response is received while body_mode_ is FULL_DUPLEX_STREAMED',
};
const NOT_REPLACED: Mistake = {
  status: Status.Internal,
  details: 'the body that the processor has received is not replaced',
};
const EMPTY = Buffer.alloc(0);
const LENGTH = headerKey('content-length');

export class ProcessedMessage {
  readonly #owner: MessageOwner;
  readonly #side: Side;
  mode: MessageMode;
  /** It is the response to a CONNECT. */
  isOfConnect = false;
  readonly #timer = new Timer<ProcessedMessage>(this, onTimeout);
  /** The processor has been asked about the head, and has not answered. */
  #awaitsHeaders = false;
  #headersMs = 0;
  #asked = Asked.Nothing;
  #askedMs = 0;
  /** The question has got another timeout. */
  #isExtended = false;
  /** The head, while the filter holds it. */
  #headers: HeaderBlock | undefined;
  #trailers: HeaderBlock | undefined;
  /** The message ends with its head. */
  #hasNoBody = false;
  #hasData = false;
  #isBodyComplete = false;
  /** The head has been received. */
  #hasBegun = false;
  /** What is received of the body is dropped. */
  #isReplaced = false;
  /** The beginning of the body has passed: the rest follows unasked. */
  #isBeginningDone = false;
  #choosesRoute = false;
  /** The processor has announced another length of the body, which it has not sent. */
  #hasNewLength = false;
  /** Pieces that the processor has not answered. */
  readonly #pieces: PieceQueue;
  /** Processed pieces that the next hop cannot take. */
  readonly #output: PieceQueue;
  #isBlocked = false;
  /** The processor's answers are not read. */
  #holdsAnswers = false;
  /** The message is released when the output has been passed on. */
  #isReleasedAfterOutput = false;

  constructor(owner: MessageOwner, side: Side, mode: MessageMode) {
    this.#owner = owner;
    this.#side = side;
    this.mode = mode;
    this.#pieces = new PieceQueue(owner.rules.maxQueuedBytes);
    this.#output = new PieceQueue(owner.rules.maxQueuedBytes);
  }

  get isAwaitingHeaders(): boolean {
    return this.#awaitsHeaders;
  }

  /** The processor is or will be asked about the message. */
  get needsProcessor(): boolean {
    if (this.#awaitsHeaders || this.#asked !== Asked.Nothing) return true;
    const { body, sendsHeaders, sendsTrailers } = this.mode;
    if (!this.#hasBegun && sendsHeaders) return true;
    return !this.#isBodyComplete && (sendsTrailers || (body !== BodyMode.None && !this.#isBeginningDone));
  }

  /** The processor has parts of the body that nobody else has. */
  get isInConversation(): boolean {
    return (
      this.#asked === Asked.Conversation || (this.mode.body === BodyMode.FullDuplex && this.#asked === Asked.Trailers)
    );
  }

  /** Called when the processor has taken its questions. */
  processorDrained(): void {
    this.#updateFlow();
  }

  // ── What is received ─────────────────────────────────────────────────────────────────────────────────────────────

  headers(headers: HeaderBlock, endStream: boolean): HeadersStatus {
    const { rules } = this.#owner;
    this.#hasBegun = true;
    this.#hasNoBody = this.#isBodyComplete = endStream;
    if (this.#owner.isComplete) return HeadersStatus.Continue;
    let status = HeadersStatus.Continue;
    if (this.mode.sendsHeaders) {
      const opened = this.#owner.open();
      if (opened !== Opened.Yes) return statusOf(opened);
      beginFields(rules.question, Part.Headers, headers, this.#side.isRequest, endStream);
      if (rules.isObserving) {
        this.#owner.ask(this.#side.isRequest);
        return HeadersStatus.Continue;
      }
      this.#headers = headers;
      this.#askHeaders();
      status = HeadersStatus.StopIteration;
    }
    if (!rules.isObserving && !endStream && hasOpenLength(this.mode)) headers.remove(LENGTH);
    return status;
  }

  data(offset: number, length: number, endStream: boolean): DataStatus {
    if (endStream) this.#isBodyComplete = true;
    this.#hasData = true;
    if (this.#isReplaced) {
      if (endStream && this.#output.isEmpty) this.#side.continue();
      else this.#isReleasedAfterOutput ||= endStream;
      return DataStatus.StopNoBuffer;
    }
    if (this.#owner.isComplete) return this.#follow(offset, length, endStream);
    if (this.#owner.rules.isObserving) return this.#observe(offset, length, endStream);
    if (this.#awaitsHeaders && !this.#sendsEarly) return this.#holdBehindHead(length);
    switch (this.mode.body) {
      case BodyMode.None:
        return this.#follow(offset, length, endStream);
      case BodyMode.Buffered:
        return endStream ? this.#askWholeBody(this.#bytes(offset, length)) : DataStatus.StopAndBuffer;
      case BodyMode.Streamed:
        return this.#askPiece(this.#bytes(offset, length), endStream);
      case BodyMode.BufferedPartial:
        return this.#askBeginning(offset, length, endStream);
      case BodyMode.FullDuplex:
        return this.#askInConversation(this.#bytes(offset, length), endStream);
    }
  }

  trailers(trailers: HeaderBlock): HeadersStatus {
    const isUnasked = !this.mode.sendsTrailers && !this.#awaitsHeaders && this.#asked === Asked.Nothing;
    if (!this.#output.isEmpty && (this.#owner.isComplete || isUnasked)) {
      this.#isReleasedAfterOutput = true;
      return HeadersStatus.StopIteration;
    }
    if (this.#owner.isComplete) return HeadersStatus.Continue;
    if (this.#owner.rules.isObserving) return this.#observeTrailers(trailers);
    const isDelivered = this.#isBodyComplete;
    this.#isBodyComplete = true;
    this.#trailers = trailers;
    if (this.#isConversing) {
      const opened = this.#owner.open();
      if (opened !== Opened.Yes) return statusOf(opened);
      this.#askTrailers(trailers);
      return HeadersStatus.StopIteration;
    }
    if (this.#awaitsHeaders || this.#asked !== Asked.Nothing) {
      return HeadersStatus.StopIteration;
    }
    if (!isDelivered && this.mode.body === BodyMode.Buffered && this.#hasData)
      return headersStatus(this.#askWholeBody(EMPTY));
    if (!isDelivered && this.mode.body === BodyMode.BufferedPartial && !this.#pieces.isEmpty) {
      this.#sendBeginning();
      return HeadersStatus.StopIteration;
    }
    if (!this.mode.sendsTrailers) return HeadersStatus.Continue;
    const opened = this.#owner.open();
    if (opened !== Opened.Yes) return statusOf(opened);
    this.#askTrailers(trailers);
    return HeadersStatus.StopIteration;
  }

  /** Called when the next hop cannot take more, and when it can. */
  blocked(isBlocked: boolean): void {
    this.#isBlocked = isBlocked;
    if (isBlocked || this.#output.isEmpty) return;
    while (!this.#isBlocked && !this.#output.isEmpty) this.#side.pass(this.#output.take().bytes);
    this.#updateFlow();
    if (this.#output.isEmpty && this.#isReleasedAfterOutput) this.#release();
  }

  // ── What is answered ─────────────────────────────────────────────────────────────────────────────────────────────

  headersAnswered({ response = {} }: PartAnswer): Mistake | undefined {
    if (!this.#awaitsHeaders) return SPURIOUS;
    const isReplacing = response.status === 1;
    if (isReplacing && this.isInConversation && response.body_mutation === undefined) return NOT_REPLACED;
    const length = this.#headers?.get(LENGTH);
    const mistake = this.#changeHead(response, Part.Headers, isReplacing);
    if (mistake !== undefined) return mistake;
    this.#hasNewLength = length !== this.#headers?.get(LENGTH);
    this.#headersEnded(Status.Ok);
    if (isReplacing) this.#replace(response);
    else if (!this.#hasNoBody && this.#goesOn()) return undefined;
    this.#finish();
    return undefined;
  }

  bodyAnswered({ response = {} }: PartAnswer): Mistake | undefined {
    if (this.#awaitsHeaders) return SPURIOUS;
    if (this.#isConversing && this.#asked !== Asked.Nothing) return this.#pieceReceived(response);
    switch (this.#asked) {
      case Asked.Body:
        return this.#wholeBodyAnswered(response);
      case Asked.Pieces:
        if (response.body_mutation?.streamed_response !== undefined) return NOT_DUPLEX;
        this.#pieceAnswered(response);
        return undefined;
      case Asked.Beginning:
        return this.#beginningAnswered(response);
      default:
        return SPURIOUS;
    }
  }

  trailersAnswered({ header_mutation: mutation }: TrailersAnswer): Mistake | undefined {
    if (this.#asked !== Asked.Trailers || this.#awaitsHeaders) return SPURIOUS;
    const mistake = mutation && this.#change(this.#trailers!, mutation, Part.Trailers, false);
    if (mistake !== undefined) return mistake;
    this.#ended(Status.Ok);
    this.#release();
    return undefined;
  }

  /** Gives the open question another timeout. Returns false if there is none, or it has got one already. */
  extend(ms: number): boolean {
    if (!this.#isTimed || this.#isExtended) return false;
    this.#isExtended = true;
    this.#owner.rules.timers.reschedule(this.#timer, ms);
    return true;
  }

  /** Called by the timer. */
  timedOut(): void {
    this.#owner.timedOut();
  }

  /** Stops the timeout of the open question while its answer is not read. */
  holdTimeout(isHeld: boolean): void {
    const { messageTimeoutMs, timers } = this.#owner.rules;
    if (isHeld || !this.#isTimed) timers.cancel(this.#timer);
    else timers.reschedule(this.#timer, messageTimeoutMs);
  }

  /** The processor does not answer any more: what is held passes unchanged. */
  abandon(status: Status): void {
    this.end(status);
    if (this.#hasNewLength) this.#headers?.remove(LENGTH);
    this.#passPieces();
    this.#release();
  }

  /** Called when the answer to the client follows, and at the end of the stream. */
  end(status: Status): void {
    if (this.#awaitsHeaders) this.#headersEnded(status);
    this.#ended(status);
    this.#owner.rules.timers.cancel(this.#timer);
  }

  // ── Questions ────────────────────────────────────────────────────────────────────────────────────────────────────

  #askHeaders(): void {
    this.#awaitsHeaders = true;
    this.#headersMs = this.#owner.rules.nowMs();
    this.#send();
  }

  #ask(asked: Asked): void {
    this.#asked = asked;
    this.#askedMs = this.#owner.rules.nowMs();
    this.#send();
  }

  #send(): void {
    const { messageTimeoutMs, timers } = this.#owner.rules;
    this.#isExtended = false;
    if (this.#isTimed) timers.reschedule(this.#timer, messageTimeoutMs);
    this.#owner.ask(this.#side.isRequest);
    this.#updateFlow();
  }

  /** As in Envoy, only what waits for one answer has a timeout. */
  get #isTimed(): boolean {
    return !this.#isConversing && (this.#awaitsHeaders || this.#asked !== Asked.Nothing);
  }

  get #isConversing(): boolean {
    return this.mode.body === BodyMode.FullDuplex;
  }

  /** The body is sent before the answer about the head. */
  get #sendsEarly(): boolean {
    const { body } = this.mode;
    return body === BodyMode.FullDuplex || (body === BodyMode.Streamed && this.#owner.rules.sendsEarly);
  }

  #observe(offset: number, length: number, endStream: boolean): DataStatus {
    // As in Envoy, other modes have no effect here.
    if (this.mode.body !== BodyMode.Streamed || this.#owner.open() !== Opened.Yes) return DataStatus.Continue;
    beginBody(this.#bytes(offset, length), this.#side.isRequest, endStream);
    this.#owner.ask(this.#side.isRequest);
    this.#updateFlow();
    return DataStatus.Continue;
  }

  #observeTrailers(trailers: HeaderBlock): HeadersStatus {
    if (!this.mode.sendsTrailers || this.#owner.open() !== Opened.Yes) return HeadersStatus.Continue;
    beginFields(this.#owner.rules.question, Part.Trailers, trailers, this.#side.isRequest, false);
    this.#owner.ask(this.#side.isRequest);
    return HeadersStatus.Continue;
  }

  #askInConversation(bytes: Uint8Array, endStream: boolean): DataStatus {
    const opened = this.#owner.open();
    if (opened !== Opened.Yes) return dataStatus(opened);
    beginBody(bytes, this.#side.isRequest, endStream);
    this.#ask(Asked.Conversation);
    return DataStatus.StopNoBuffer;
  }

  #askWholeBody(last: Uint8Array): DataStatus {
    const opened = this.#owner.open();
    if (opened !== Opened.Yes) return dataStatus(opened);
    beginBody(Buffer.concat([this.#side.read(), last]), this.#side.isRequest, this.#trailers === undefined);
    this.#ask(Asked.Body);
    return DataStatus.StopAndBuffer;
  }

  #askPiece(bytes: Uint8Array, endStream: boolean): DataStatus {
    const opened = this.#owner.open();
    if (opened !== Opened.Yes) return dataStatus(opened);
    this.#pieces.add({ bytes, isLast: endStream });
    beginBody(bytes, this.#side.isRequest, endStream);
    this.#ask(Asked.Pieces);
    return DataStatus.StopNoBuffer;
  }

  #askBeginning(offset: number, length: number, endStream: boolean): DataStatus {
    if (this.#isBeginningDone) return this.#follow(offset, length, endStream);
    this.#pieces.add({ bytes: this.#bytes(offset, length), isLast: endStream });
    if (this.#asked !== Asked.Beginning && (endStream || this.#pieces.isFull)) this.#sendBeginning();
    return DataStatus.StopNoBuffer;
  }

  /** If there is no stream to the processor, abandon() has passed the pieces on. */
  #sendBeginning(): void {
    if (this.#owner.open() !== Opened.Yes) return;
    this.#pieces.join();
    const { bytes, isLast } = this.#pieces.first;
    beginBody(bytes, this.#side.isRequest, isLast);
    this.#ask(Asked.Beginning);
  }

  #askTrailers(trailers: HeaderBlock): void {
    beginFields(this.#owner.rules.question, Part.Trailers, trailers, this.#side.isRequest, false);
    this.#ask(Asked.Trailers);
  }

  /** As in Envoy, the beginning of a body is read while the processor is asked about the head. */
  #holdBehindHead(length: number): DataStatus {
    // Only the whole body in memory has a limit.
    if (this.mode.body !== BodyMode.Buffered) this.#side.makeRoom(length);
    this.#side.pause();
    return DataStatus.StopAndBuffer;
  }

  /** Passes what the processor does not get on, behind the output. */
  #follow(offset: number, length: number, endStream: boolean): DataStatus {
    if (this.#output.isEmpty) return DataStatus.Continue;
    this.#output.add({ bytes: this.#bytes(offset, length), isLast: endStream });
    this.#isReleasedAfterOutput ||= endStream;
    this.#updateFlow();
    return DataStatus.StopNoBuffer;
  }

  #bytes(offset: number, length: number): Buffer {
    return Buffer.from(this.#owner.rules.memory.bytes.subarray(offset, offset + length));
  }

  // ── Answers ──────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Asks about what has been received behind the head. Returns false if the processor gets none of it. */
  #goesOn(): boolean {
    if (this.mode.body === BodyMode.None) return false;
    if (hasOpenLength(this.mode)) this.#headers?.remove(LENGTH);
    if (this.#sendsEarly) {
      if (this.#asked === Asked.Nothing && this.#isBodyComplete) return false;
      this.#passHead();
      this.#updateFlow();
      return true;
    }
    if (this.#isBodyComplete) {
      if (!this.#hasData) return false;
      this.#askWholeBody(EMPTY);
      return true;
    }
    if (this.mode.body !== BodyMode.Buffered) this.#queueHeld();
    if (this.mode.body === BodyMode.BufferedPartial && this.#pieces.isFull) this.#sendBeginning();
    this.#updateFlow();
    return true;
  }

  /** Moves what the stream holds to the queue of pieces. */
  #queueHeld(): void {
    const held = this.#side.read();
    this.#side.replace(undefined);
    if (held.length > 0) this.#pieces.add({ bytes: held, isLast: false });
    if (this.mode.body !== BodyMode.Streamed) return;
    this.#passHead();
    if (held.length === 0) return;
    beginBody(held, this.#side.isRequest, false);
    this.#ask(Asked.Pieces);
  }

  #wholeBodyAnswered(response: CommonResponse): Mistake | undefined {
    const bytes = replacementOf(response);
    const mistake = this.#changeHead(response, Part.Body, response.status === 1);
    if (mistake !== undefined) return mistake;
    if (this.#headers !== undefined && this.#isWrongLength(response, bytes?.length)) return WRONG_LENGTH;
    if (bytes !== undefined) this.#side.replace(bytes);
    if (bytes !== undefined) this.#affected(Part.Body, Effect.Applied);
    this.#ended(Status.Ok);
    this.#finish();
    return undefined;
  }

  /** As in Envoy, the content-length must be right if the processor mentions the body. */
  #isWrongLength({ body_mutation: mutation }: CommonResponse, changed: number | undefined): boolean {
    const length = this.#headers!.get(LENGTH);
    if (length === undefined) return false;
    if (mutation !== undefined) return Number(length) !== (mutation.body?.length ?? 0);
    return Number(length) !== (changed ?? this.#side.heldBytes());
  }

  /** A part of a conversation about the body. */
  #pieceReceived({ body_mutation: mutation }: CommonResponse): Mistake | undefined {
    const piece = mutation?.streamed_response;
    if (piece === undefined) return NOT_STREAMED;
    const { body = EMPTY, end_of_stream: isLast = false } = piece;
    this.#affected(Part.Body, Effect.Applied);
    this.#record(Part.Body, Status.Ok, this.#askedMs);
    if (body.length > 0) this.#pass(body);
    if (isLast) {
      // What still arrives of the body is dropped.
      this.#isReplaced = true;
      this.mode = { ...this.mode, body: BodyMode.None };
      if (this.#asked !== Asked.Trailers) {
        this.#asked = Asked.Nothing;
        if (this.#isBodyComplete) this.#finish();
      }
    }
    this.#updateFlow();
    return undefined;
  }

  #pieceAnswered(response: CommonResponse): void {
    const { bytes, isLast } = this.#pieces.take();
    const changed = replacementOf(response);
    if (changed !== undefined) this.#affected(Part.Body, Effect.Applied);
    this.#noteRoute(response);
    this.#ended(Status.Ok, this.#pieces.isEmpty ? Asked.Nothing : Asked.Pieces);
    this.#pass(changed ?? bytes);
    this.#updateFlow();
    if (this.#pieces.isEmpty && this.#askAboutTrailers()) return;
    if (isLast || (this.#pieces.isEmpty && this.#trailers !== undefined)) this.#release();
  }

  #beginningAnswered(response: CommonResponse): Mistake | undefined {
    const mistake = this.#changeHead(response, Part.Body, false);
    if (mistake !== undefined) return mistake;
    this.#headers?.remove(LENGTH);
    const { bytes } = this.#pieces.take();
    const changed = replacementOf(response);
    if (changed !== undefined) this.#affected(Part.Body, Effect.Applied);
    this.#ended(Status.Ok);
    this.#isBeginningDone = true;
    this.#passHead();
    this.#pass(changed ?? bytes);
    while (!this.#pieces.isEmpty) this.#pass(this.#pieces.take().bytes);
    this.#finish();
    return undefined;
  }

  /** CONTINUE_AND_REPLACE: nothing more of the message is sent to the processor. */
  #replace({ body_mutation: mutation }: CommonResponse): void {
    // The body may have been sent without waiting.
    this.#ended(Status.Ok);
    if (mutation !== undefined && this.#mayHaveBody) {
      this.#headers?.remove(LENGTH);
      this.#pieces.clear();
      this.#isReplaced = true;
      this.#side.replace(mutation.body);
      this.#affected(Part.Body, Effect.Applied);
    }
    this.mode = { ...this.mode, body: BodyMode.None, sendsTrailers: false };
    this.#passPieces();
  }

  get #mayHaveBody(): boolean {
    return this.#side.isRequest || !hasNoBody(this.#headers!.status);
  }

  /** Asks about trailers that have been received, or else releases the message. */
  #finish(): void {
    if (!this.#askAboutTrailers()) this.#release();
  }

  #askAboutTrailers(): boolean {
    if (!this.mode.sendsTrailers || this.#trailers === undefined) return false;
    this.#askTrailers(this.#trailers);
    return true;
  }

  #changeHead(response: CommonResponse, part: Part, isReplacing: boolean): Mistake | undefined {
    const { header_mutation: mutation } = response;
    if (mutation !== undefined && this.#headers !== undefined) {
      const mistake = this.#change(this.#headers, mutation, part, isReplacing);
      if (mistake !== undefined) return mistake;
    }
    this.#noteRoute(response);
    return undefined;
  }

  #change(block: HeaderBlock, mutation: HeaderMutation, part: Part, isReplacing: boolean): Mistake | undefined {
    const details = this.#owner.rules.change(block, mutation, {
      kind: part === Part.Trailers ? 'trailers' : this.#side.isRequest ? 'request' : 'response',
      isReplacing,
      isOfConnect: this.isOfConnect,
      takesLength: this.mode.body === BodyMode.Buffered && !this.#hasNoBody && !(isReplacing && part === Part.Headers),
      onRejected: () => this.#owner.onRejected(),
    });
    // As in Envoy, a change of the head that comes with the body is recorded for the head.
    this.#affected(part === Part.Body ? Part.Headers : part, details === undefined ? Effect.Applied : Effect.Rejected);
    return details === undefined ? undefined : { status: Status.InvalidArgument, details };
  }

  /** The route is chosen again when the head of a request passes on. */
  #noteRoute(response: CommonResponse): void {
    if (!this.#side.isRequest || !this.#owner.choosesRoute(response)) return;
    this.#choosesRoute = this.#headers !== undefined;
  }

  #affected(part: Part, effect: Effect): void {
    this.#owner.affected(this.#side.isRequest, part, effect);
  }

  #headersEnded(status: Status): void {
    this.#awaitsHeaders = false;
    this.#record(Part.Headers, status, this.#headersMs);
    this.#restartTimer();
  }

  #ended(status: Status, next = Asked.Nothing): void {
    if (this.#asked === Asked.Nothing) return;
    this.#record(this.#asked === Asked.Trailers ? Part.Trailers : Part.Body, status, this.#askedMs);
    this.#asked = next;
    this.#restartTimer();
  }

  #record(part: Part, status: Status, sinceMs: number): void {
    this.#owner.ended(this.#side.isRequest, part, this.#owner.rules.nowMs() - sinceMs, status);
  }

  #restartTimer(): void {
    const { messageTimeoutMs, timers } = this.#owner.rules;
    this.#isExtended = false;
    if (this.#isTimed) timers.reschedule(this.#timer, messageTimeoutMs);
    else timers.cancel(this.#timer);
  }

  // ── The way on ───────────────────────────────────────────────────────────────────────────────────────────────────

  #passHead(): void {
    if (this.#headers === undefined || !this.#matchRoute()) return;
    this.#headers = undefined;
    this.#side.passHead();
  }

  /** Passes the pieces on that have no answer, behind the head. */
  #passPieces(): void {
    if (this.#pieces.isEmpty) return;
    this.#passHead();
    while (!this.#pieces.isEmpty) this.#pass(this.#pieces.take().bytes);
  }

  #pass(bytes: Uint8Array): void {
    if (this.#isBlocked) this.#output.add({ bytes, isLast: false });
    else this.#side.pass(bytes);
  }

  #release(): void {
    this.#isReleasedAfterOutput = !this.#output.isEmpty;
    if (this.#isReleasedAfterOutput || !this.#matchRoute()) return;
    this.#headers = undefined;
    // Before reading resumes: what follows must stay behind.
    this.#side.continue();
    this.#updateFlow();
  }

  /** Returns false if the request got an answer. */
  #matchRoute(): boolean {
    const chooses = this.#choosesRoute;
    this.#choosesRoute = false;
    return !chooses || this.#owner.chooseRoute();
  }

  /** The peer is read while the filter can take more. */
  #updateFlow(): void {
    const isWaiting = this.#asked > Asked.Pieces || (this.#awaitsHeaders && this.#hasData && !this.#sendsEarly);
    const isFull = this.#pieces.isFull || this.#output.isFull || this.#owner.isProcessorFull;
    if (isWaiting || isFull) this.#side.pause();
    else this.#side.resume();
    if (this.#holdsAnswers === this.#output.isFull) return;
    this.#holdsAnswers = this.#output.isFull;
    this.#owner.holdAnswers(this.#holdsAnswers);
  }
}

function onTimeout(message: ProcessedMessage): void {
  message.timedOut();
}

/** Returns what replaces a body or a piece of it; undefined: it stays. */
function replacementOf({ body_mutation: mutation }: CommonResponse): Uint8Array | undefined {
  if (mutation?.body !== undefined) return mutation.body;
  return mutation?.clear_body === true ? EMPTY : undefined;
}

function statusOf(opened: Opened): HeadersStatus {
  return opened === Opened.Skipped ? HeadersStatus.Continue : HeadersStatus.StopIteration;
}

function dataStatus(opened: Opened): DataStatus {
  return opened === Opened.Skipped ? DataStatus.Continue : DataStatus.StopAndBuffer;
}

function headersStatus(status: DataStatus): HeadersStatus {
  return status === DataStatus.Continue ? HeadersStatus.Continue : HeadersStatus.StopIteration;
}
