// The two directions of a stream: what a message needs of the stream that carries it.

import type { HeaderBlock, StreamControl } from '../../../sdk.js';

export interface Direction {
  readonly what: 'request' | 'response';
  /** Why a module cannot use the message after its hook has ended. */
  readonly goneOn: string;
  /** Pass on what the filter holds. */
  continue(stream: StreamControl): void;
  pause(stream: StreamControl): void;
  resume(stream: StreamControl): void;
  /** Return, drop and append to the bytes that the filter holds. */
  held(stream: StreamControl): Buffer;
  drop(stream: StreamControl): void;
  add(stream: StreamControl, bytes: Uint8Array): void;
  /** Passes bytes on after the head. */
  write(stream: StreamControl, bytes: Uint8Array): void;
  addTrailers(stream: StreamControl): HeaderBlock | undefined;
}

/** Written once: each message needs it. */
function goneOn(what: string): string {
  return `the ${what} has gone on: it can be used until the hook has returned, or its promise is settled`;
}

export const REQUEST: Direction = {
  what: 'request',
  goneOn: goneOn('request'),
  continue: (stream) => stream.continueDecoding(),
  pause: (stream) => stream.pauseRequest(),
  resume: (stream) => stream.resumeRequest(),
  held: (stream) => stream.readRequestBytes(),
  drop: (stream) => stream.dropRequestBytes(),
  add: (stream, bytes) => stream.addRequestBytes(bytes),
  write: (stream, bytes) => stream.passRequestBytes(bytes),
  addTrailers: (stream) => stream.addRequestTrailers(),
};

export const RESPONSE: Direction = {
  what: 'response',
  goneOn: goneOn('response'),
  continue: (stream) => stream.continueEncoding(),
  pause: (stream) => stream.pauseResponse(),
  resume: (stream) => stream.resumeResponse(),
  held: (stream) => stream.readResponseBytes(),
  drop: (stream) => stream.dropResponseBytes(),
  add: (stream, bytes) => stream.addResponseBytes(bytes),
  write: (stream, bytes) => stream.passResponseBytes(bytes),
  addTrailers: (stream) => stream.addResponseTrailers(),
};
