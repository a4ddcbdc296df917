// What the processor is asked about (ProcessingMode).

import type { ProcessingMode, ProcessingMode_BodySendMode } from '../../../../config/generated/api.js';

/** The numbers of ProcessingMode.BodySendMode. */
export const enum BodyMode {
  None = 0,
  Streamed = 1,
  Buffered = 2,
  BufferedPartial = 3,
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
};
