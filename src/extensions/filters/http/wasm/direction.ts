// The two directions of a stream, and the functions of a module for each.

import type { StreamControl } from '../../../sdk.js';
import { BlockKind } from './block-headers.js';

export interface Direction {
  readonly kind: BlockKind;
  readonly onHeaders: string;
  readonly onBody: string;
  readonly onTrailers: string;
  /** Pass on what the filter holds. */
  continue(stream: StreamControl): void;
  /** Return, count, drop and append to the bytes that the filter holds. */
  held(stream: StreamControl): Buffer;
  heldBytes(stream: StreamControl): number;
  drop(stream: StreamControl): void;
  add(stream: StreamControl, bytes: Uint8Array): void;
  pause(stream: StreamControl): void;
  resume(stream: StreamControl): void;
}

export const REQUEST: Direction = {
  kind: BlockKind.Request,
  onHeaders: 'proxy_on_request_headers',
  onBody: 'proxy_on_request_body',
  onTrailers: 'proxy_on_request_trailers',
  continue: (stream) => stream.continueDecoding(),
  held: (stream) => stream.readRequestBytes(),
  heldBytes: (stream) => stream.heldRequestBytes(),
  drop: (stream) => stream.dropRequestBytes(),
  add: (stream, bytes) => stream.addRequestBytes(bytes),
  pause: (stream) => stream.pauseRequest(),
  resume: (stream) => stream.resumeRequest(),
};

export const RESPONSE: Direction = {
  kind: BlockKind.Response,
  onHeaders: 'proxy_on_response_headers',
  onBody: 'proxy_on_response_body',
  onTrailers: 'proxy_on_response_trailers',
  continue: (stream) => stream.continueEncoding(),
  held: (stream) => stream.readResponseBytes(),
  heldBytes: (stream) => stream.heldResponseBytes(),
  drop: (stream) => stream.dropResponseBytes(),
  add: (stream, bytes) => stream.addResponseBytes(bytes),
  pause: (stream) => stream.pauseResponse(),
  resume: (stream) => stream.resumeResponse(),
};
