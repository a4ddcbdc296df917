// What the processor is asked about (ProcessingMode).

import type { ProcessingMode, ProcessingMode_BodySendMode } from '../../../../config/generated/api.js';
import type { ModeOverride } from './answer.js';

/** The numbers of ProcessingMode.BodySendMode. */
export const enum BodyMode {
  None = 0,
  Streamed = 1,
  Buffered = 2,
  BufferedPartial = 3,
  FullDuplex = 4,
}

/** The mode of one direction. */
export interface MessageMode {
  readonly sendsHeaders: boolean;
  readonly body: BodyMode;
  readonly sendsTrailers: boolean;
}

export interface Mode {
  readonly request: MessageMode;
  readonly response: MessageMode;
}

/** As in Envoy, heads are sent by default, bodies and trailers are not. */
export function compileMode(mode: ProcessingMode = {}): Mode {
  const { request_body_mode: request = 'NONE', response_body_mode: response = 'NONE' } = mode;
  return {
    request: {
      sendsHeaders: mode.request_header_mode !== 'SKIP',
      body: BODY_MODES[request]!,
      sendsTrailers: mode.request_trailer_mode === 'SEND',
    },
    response: {
      sendsHeaders: mode.response_header_mode !== 'SKIP',
      body: BODY_MODES[response]!,
      sendsTrailers: mode.response_trailer_mode === 'SEND',
    },
  };
}

/**
 * Returns the mode that an answer asks for; undefined: Baton does not have it. As in Envoy, what it leaves open about heads and trailers
 * stays as configured, and bodies that it does not mention are not sent.
 */
export function overriddenMode(mode: ModeOverride, { request, response }: Mode): Mode | undefined {
  const { request_body_mode: requestBody = 0, response_body_mode: responseBody = 0 } = mode;
  // What has not been sent piece by piece from the start cannot be a conversation.
  if (!isHeldOrQueued(requestBody) || !isHeldOrQueued(responseBody)) return undefined;
  return {
    request: {
      sendsHeaders: isSent(mode.request_header_mode, request.sendsHeaders),
      body: requestBody,
      sendsTrailers: isSent(mode.request_trailer_mode, request.sendsTrailers),
    },
    response: {
      sendsHeaders: isSent(mode.response_header_mode, response.sendsHeaders),
      body: responseBody,
      sendsTrailers: isSent(mode.response_trailer_mode, response.sendsTrailers),
    },
  };
}

/** The number comes from the processor: it may be any. */
function isHeldOrQueued(body: number): boolean {
  return body >= BodyMode.None && body < BodyMode.FullDuplex;
}

/** `mode`: a HeaderSendMode. */
function isSent(mode: number | undefined, configured: boolean): boolean {
  return mode === SEND || (mode !== SKIP && configured);
}

/** Returns the mode without bodies and trailers. */
export function headsOf({ request, response }: Mode): Mode {
  return {
    request: { ...request, body: BodyMode.None, sendsTrailers: false },
    response: { ...response, body: BodyMode.None, sendsTrailers: false },
  };
}

/** Returns whether the processor answers with a body of its own in one direction. */
export function hasConversation({ request, response }: Mode): boolean {
  return request.body === BodyMode.FullDuplex || response.body === BodyMode.FullDuplex;
}

/** Returns whether the processor gets bodies or trailers. */
export function hasMoreThanHeads({ request, response }: Mode): boolean {
  return [request, response].some(({ body, sendsTrailers }) => body !== BodyMode.None || sendsTrailers);
}

/** Returns whether two modes ask for the same. As in Envoy, the head of the request does not count: it has been sent. */
export function isSameMode(one: Mode, other: Mode): boolean {
  return (
    one.request.body === other.request.body &&
    one.request.sendsTrailers === other.request.sendsTrailers &&
    one.response.sendsHeaders === other.response.sendsHeaders &&
    one.response.body === other.response.body &&
    one.response.sendsTrailers === other.response.sendsTrailers
  );
}

/** ProcessingMode.HeaderSendMode. */
const SEND = 1;
const SKIP = 2;

/** Returns whether the length of a body is not known before its head is passed on. */
export function hasOpenLength({ body, sendsHeaders }: MessageMode): boolean {
  return body === BodyMode.Buffered ? !sendsHeaders : body !== BodyMode.None;
}

/** The modes that Baton has. */
const BODY_MODES: { readonly [mode in ProcessingMode_BodySendMode]?: BodyMode } = {
  NONE: BodyMode.None,
  STREAMED: BodyMode.Streamed,
  BUFFERED: BodyMode.Buffered,
  BUFFERED_PARTIAL: BodyMode.BufferedPartial,
  FULL_DUPLEX_STREAMED: BodyMode.FullDuplex,
};
