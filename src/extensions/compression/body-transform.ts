// A body that a stream of Node compresses or decompresses, on a thread of libuv's pool, while the worker serves others. What arrives is
// copied to the stream; at most MAX_PENDING_BYTES wait there, and while the next hop is blocked the stream makes nothing.

import type { Transform } from 'node:stream';
import type { HeaderBlock, Memory, StreamControl } from '../sdk.js';
import type { CompressionLibrary } from './library.js';

/** A whole body up to this length is compressed at once, in a fraction of a millisecond. */
const MAX_SHORT_BYTES = 16 * 1024;

/** The memory of a stream that waits for input is counted in steps of this size. */
const MEMORY_STEP = 64 * 1024;
const NO_BYTES = new Uint8Array(0);

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
  /** Counts the memory of the stream. */
  readonly outside: Memory['outside'];
  /** The output may be at most this many times as long as the input. */
  readonly maxRatio?: number;
  /** Called for input that is not valid, or longer output. The filter must end the message. */
  onInvalid(reason: string): void;
  /** Called when there is no memory for the stream, unless reserve() has reserved it. The filter must end the message. */
  onShortage?(): void;
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
  readonly #library: CompressionLibrary;
  readonly #run: (act: () => void) => void;
  readonly #body: TransformedBody;
  readonly #options: TransformOptions;
  /** Undefined until there is input. */
  #transform: Transform | undefined;
  #isBlocked: boolean;
  /** The memory that the stream uses at most; 0 until it is known. And how much of it is reserved. */
  #maxMemory = 0;
  #reserved = 0;
  #written = 0;
  #pending = 0;
  #passed = 0;
  #isInputComplete = false;
  #isOutputComplete = false;
  #isOver = false;

  /** `run`: StreamControl.run(). `isBlocked`: the next hop is blocked already. */
  constructor(
    library: CompressionLibrary,
    run: (act: () => void) => void,
    body: TransformedBody,
    options: TransformOptions,
    isBlocked: boolean,
  ) {
    this.#library = library;
    this.#run = run;
    this.#body = body;
    this.#options = options;
    this.#isBlocked = isBlocked;
  }

  /** Reserves the memory of the stream in advance. Returns false if there is none: the body must not be transformed. */
  reserve(): boolean {
    this.#maxMemory = this.#library.memoryBytes(NO_BYTES);
    return this.#reserve(this.#maxMemory);
  }

  /** Takes a copy of the bytes. */
  write(bytes: Uint8Array, isLast: boolean): void {
    if (this.#isOver) return;
    const { length } = bytes;
    if (isLast && this.#transform === undefined && length <= MAX_SHORT_BYTES && this.#compressShort(bytes)) return;
    if (length > 0 && !this.#isOutputComplete) {
      this.#written += length;
      if (!this.#hasMemory(bytes)) return this.#onShortage();
      this.#pending += length;
      if (this.#pending > MAX_PENDING_BYTES) this.#body.pause();
      this.#start().write(Buffer.from(bytes), () => this.#onTaken(length));
    }
    if (isLast) this.end();
  }

  end(): void {
    if (this.#isOver) return;
    this.#isInputComplete = true;
    if (this.#isOutputComplete) this.#finish();
    else if (this.#transform !== undefined || this.#hasMemory(NO_BYTES)) this.#start().end();
    else this.#onShortage();
  }

  /** Called when the next hop is blocked, and when it can take more. */
  blocked(): void {
    this.#isBlocked = true;
    this.#transform?.pause();
  }

  drained(): void {
    this.#isBlocked = false;
    this.#transform?.resume();
  }

  destroy(): void {
    this.#isOver = true;
    if (this.#transform === undefined) this.#release();
    else this.#transform.destroy();
  }

  // ── Memory ───────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Reserves the memory of a stream whose input continues with `input`. Returns false if there is none. */
  #hasMemory(input: Uint8Array): boolean {
    if (this.#maxMemory === 0) this.#maxMemory = this.#library.memoryBytes(input);
    const missing = this.#maxMemory - this.#reserved;
    return missing <= 0 || this.#reserve(missing);
  }

  /**
   * Called when the stream has taken all its input: it has filled no more memory than its output could, which may be `maxRatio` times as
   * long. Otherwise a few bytes that announce a large window would keep the memory from others.
   */
  #releaseUnfilled(): void {
    const { maxRatio, outside } = this.#options;
    if (maxRatio === undefined) return;
    const filled = (1 + Math.ceil((this.#written * maxRatio) / MEMORY_STEP)) * MEMORY_STEP;
    const unfilled = this.#reserved - filled;
    if (unfilled <= 0) return;
    outside.release(unfilled);
    this.#reserved = filled;
  }

  #reserve(bytes: number): boolean {
    if (!this.#options.outside.reserve(bytes)) return false;
    this.#reserved += bytes;
    return true;
  }

  #release(): void {
    this.#options.outside.release(this.#reserved);
    this.#reserved = 0;
  }

  #onShortage(): void {
    this.#options.outside.refusals++;
    this.destroy();
    this.#body.resume();
    this.#options.onShortage?.();
  }

  // ── The stream ───────────────────────────────────────────────────────────────────────────────────────────────────

  #start(): Transform {
    if (this.#transform !== undefined) return this.#transform;
    const transform = this.#library.create();
    transform.once('close', () => this.#release());
    transform.on('data', (bytes: Buffer) => this.#run(() => this.#onData(bytes)));
    transform.on('end', () => this.#run(() => this.#onEnd()));
    transform.on('error', ({ message }) => this.#run(() => this.#onInvalid(message)));
    if (this.#isBlocked) transform.pause();
    this.#transform = transform;
    return transform;
  }

  /** Called within the filter's callback for the only piece of a body. */
  #compressShort(bytes: Uint8Array): boolean {
    const result = this.#library.compressShort?.(bytes);
    if (result === undefined) return false;
    this.#options.onOutput(result.length);
    this.#body.pass(result);
    this.#finish();
    return true;
  }

  #onTaken(length: number): void {
    this.#pending -= length;
    if (this.#pending === 0) this.#releaseUnfilled();
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

  /** Compressed data show where they end. As in Envoy, what follows them is dropped. */
  #onEnd(): void {
    if (this.#isOver) return;
    this.#isOutputComplete = true;
    if (this.#isInputComplete) return this.#finish();
    this.#transform?.destroy();
    this.#body.resume();
  }

  #finish(): void {
    this.#isOver = true;
    if (this.#transform === undefined) this.#release();
    this.#options.onEnd?.(this.#body);
    this.#body.continue();
  }

  #onInvalid(reason: string): void {
    if (this.#isOver || this.#isOutputComplete) return;
    this.destroy();
    this.#body.resume();
    this.#options.onInvalid(reason);
  }
}
