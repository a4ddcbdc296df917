// A body that a stream of Node compresses or decompresses, on a thread of libuv's pool, while the worker serves others. What arrives is
// copied to the stream; at most MAX_PENDING_BYTES wait there, and while the next hop is blocked the stream makes nothing.

import type { Transform } from 'node:stream';
import type { HeaderBlock, StreamControl } from '../sdk.js';

/** Above this much input that the stream has not taken, no more is read. */
const MAX_PENDING_BYTES = 64 * 1024;

/** The body of one direction, as a filter controls it. */
export interface TransformedBody {
  pass(bytes: Uint8Array): void;
  addTrailers(): HeaderBlock | undefined;
  continue(): void;
  pause(): void;
  resume(): void;
}

export function requestBody(stream: StreamControl): TransformedBody {
  return {
    pass: (bytes) => stream.passRequestBytes(bytes),
    addTrailers: () => stream.addRequestTrailers(),
    continue: () => stream.continueDecoding(),
    pause: () => stream.pauseRequest(),
    resume: () => stream.resumeRequest(),
  };
}

export function responseBody(stream: StreamControl): TransformedBody {
  return {
    pass: (bytes) => stream.passResponseBytes(bytes),
    addTrailers: () => stream.addResponseTrailers(),
    continue: () => stream.continueEncoding(),
    pause: () => stream.pauseResponse(),
    resume: () => stream.resumeResponse(),
  };
}

export interface TransformOptions {
  /** The output may be at most this many times as long as the input. */
  readonly maxRatio?: number;
  /** Called for input that is not valid, or longer output. The filter must end the message. */
  onInvalid(reason: string): void;
  /** Called with the length of a piece of output before it is passed on. */
  onOutput(bytes: number): void;
  /** Called when the whole body has been passed on, before its end is. */
  onEnd?(body: TransformedBody): void;
}

/**
 * The filter returns StopNoBuffer for each piece that it writes, and StopIteration for trailers: the transform continues the message at its
 * end.
 */
export class BodyTransform {
  readonly #transform: Transform;
  readonly #body: TransformedBody;
  readonly #options: TransformOptions;
  #written = 0;
  #pending = 0;
  #passed = 0;
  #isOver = false;

  /** `run`: StreamControl.run(). */
  constructor(transform: Transform, run: (act: () => void) => void, body: TransformedBody, options: TransformOptions) {
    this.#transform = transform;
    this.#body = body;
    this.#options = options;
    transform.on('data', (bytes: Buffer) => run(() => this.#onData(bytes)));
    transform.on('end', () => run(() => this.#onEnd()));
    transform.on('error', ({ message }) => run(() => this.#onInvalid(message)));
    this.#run = run;
  }

  readonly #run: (act: () => void) => void;

  /** Takes a copy of the bytes. */
  write(bytes: Uint8Array): void {
    if (this.#isOver || bytes.length === 0) return;
    this.#written += bytes.length;
    this.#pending += bytes.length;
    if (this.#pending > MAX_PENDING_BYTES) this.#body.pause();
    const { length } = bytes;
    this.#transform.write(Buffer.from(bytes), () => this.#onTaken(length));
  }

  end(): void {
    if (!this.#isOver) this.#transform.end();
  }

  /** Called when the next hop is blocked, and when it can take more. */
  blocked(): void {
    this.#transform.pause();
  }

  drained(): void {
    this.#transform.resume();
  }

  destroy(): void {
    this.#isOver = true;
    this.#transform.destroy();
  }

  #onTaken(length: number): void {
    this.#pending -= length;
    if (this.#isOver || this.#pending > MAX_PENDING_BYTES / 2) return;
    this.#run(() => this.#body.resume());
  }

  #onData(bytes: Buffer): void {
    if (this.#isOver) return;
    this.#passed += bytes.length;
    const { maxRatio = Number.POSITIVE_INFINITY } = this.#options;
    if (this.#passed > this.#written * maxRatio) return this.#onInvalid(`it is over ${maxRatio} times as long`);
    this.#options.onOutput(bytes.length);
    this.#body.pass(bytes);
  }

  #onEnd(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#options.onEnd?.(this.#body);
    this.#body.continue();
  }

  #onInvalid(reason: string): void {
    if (this.#isOver) return;
    this.destroy();
    this.#body.resume();
    this.#options.onInvalid(reason);
  }
}
