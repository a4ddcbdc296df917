// The two directions of a stream.

import type { StreamControl } from '../../../sdk.js';
import { HeadKind } from './objects/headers.js';

export interface Direction {
  readonly kind: HeadKind;
  /** Pass on what the filter holds. */
  continue(stream: StreamControl): void;
  /** Return, drop and append to the bytes that the filter holds. */
  held(stream: StreamControl): Buffer;
  drop(stream: StreamControl): void;
  add(stream: StreamControl, bytes: Uint8Array): void;
}

export const REQUEST: Direction = {
  kind: HeadKind.Request,
  continue: (stream) => stream.continueDecoding(),
  held: (stream) => stream.readRequestBytes(),
  drop: (stream) => stream.dropRequestBytes(),
  add: (stream, bytes) => stream.addRequestBytes(bytes),
};

export const RESPONSE: Direction = {
  kind: HeadKind.Response,
  continue: (stream) => stream.continueEncoding(),
  held: (stream) => stream.readResponseBytes(),
  drop: (stream) => stream.dropResponseBytes(),
  add: (stream, bytes) => stream.addResponseBytes(bytes),
};
