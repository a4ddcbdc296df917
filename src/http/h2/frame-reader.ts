// Splits received bytes into frames. The payload of a DATA frame is passed on as it arrives, every other one when it is complete.

import { type Memory, NO_BLOCK } from '../../io/memory.js';
import { ErrorCode, Flag, FRAME_HEADER_BYTES, FrameType, MAX_FRAME_BYTES, PREFACE, readUint31 } from './frames.js';

/** Takes frames. Ranges are in the memory and valid until the call returns. */
export interface FrameHandler {
  /** Called for each frame header. Returns false if the frame is refused: the connection has ended. */
  onFrameHeader(type: number, flags: number, streamId: number, length: number): boolean;
  /** Called with a complete payload, except for DATA. */
  onFrame(type: number, flags: number, streamId: number, at: number, end: number): void;
  /** Called for each received part of a DATA frame's payload; `isLast`: the last one, which may be empty. */
  onDataPart(streamId: number, at: number, end: number, isLast: boolean): void;
  /** Called with the length of the padding of a DATA frame, including the byte with the length. */
  onPadding(streamId: number, length: number): void;
  /** Called for bytes that are no valid frame: the connection must end. */
  onFramingError(code: ErrorCode, text: string): void;
}

const enum Reading {
  Preface = 0,
  Header = 1,
  /** A payload that is handled when it is complete. */
  Payload = 2,
  PadLength = 3,
  Data = 4,
  Padding = 5,
  Closed = 6,
}

export class FrameReader {
  readonly #memory: Memory;
  readonly #handler: FrameHandler;
  #reading: Reading;
  /** Bytes of the preface or of an incomplete frame header that have been received. */
  #received = 0;
  /** The received part of a frame header. */
  #header: Uint8Array | undefined;
  #type = 0;
  #flags = 0;
  #streamId = 0;
  /** Bytes of the payload that are missing, without padding. */
  #left = 0;
  #padding = 0;
  /** Arena block with the received part of a payload. */
  #block = NO_BLOCK;
  #blockBytes = 0;

  /** `awaitsPreface`: the peer is a client. */
  constructor(memory: Memory, handler: FrameHandler, awaitsPreface: boolean) {
    this.#memory = memory;
    this.#handler = handler;
    this.#reading = awaitsPreface ? Reading.Preface : Reading.Header;
  }

  /** Bytes that are kept until the rest of their frame arrives. */
  get bufferedBytes(): number {
    return this.#blockBytes;
  }

  get retainedBytes(): number {
    return this.#block === NO_BLOCK ? 0 : this.#memory.blockSize(this.#block);
  }

  /** Stops reading and releases what is kept. */
  close(): void {
    this.#reading = Reading.Closed;
    this.#release();
  }

  /** Handles a piece of the non-empty memory[at, end). Returns the offset after it. */
  step(at: number, end: number): number {
    switch (this.#reading) {
      case Reading.Preface:
        return this.#readPreface(at, end);
      case Reading.Header:
        return this.#readHeader(at, end);
      case Reading.Payload:
        return this.#readPayload(at, end);
      case Reading.PadLength:
        return this.#readPadLength(at);
      case Reading.Data:
        return this.#readData(at, end);
      case Reading.Padding:
        return this.#skipPadding(at, end);
      default:
        return end;
    }
  }

  #readPreface(at: number, end: number): number {
    const { bytes } = this.#memory;
    while (at < end && this.#received < PREFACE.length) {
      if (bytes[at++] !== PREFACE[this.#received++]) {
        this.#handler.onFramingError(ErrorCode.ProtocolError, 'invalid preface');
        return end;
      }
    }
    if (this.#received === PREFACE.length) {
      this.#received = 0;
      this.#reading = Reading.Header;
    }
    return at;
  }

  #readHeader(at: number, end: number): number {
    const { bytes } = this.#memory;
    if (this.#received === 0 && end - at >= FRAME_HEADER_BYTES) {
      this.#begin(bytes, at);
      return at + FRAME_HEADER_BYTES;
    }
    this.#header ??= new Uint8Array(FRAME_HEADER_BYTES);
    while (at < end && this.#received < FRAME_HEADER_BYTES) this.#header[this.#received++] = bytes[at++]!;
    if (this.#received === FRAME_HEADER_BYTES) {
      this.#received = 0;
      this.#begin(this.#header, 0);
    }
    return at;
  }

  #begin(bytes: Uint8Array, at: number): void {
    const length = (bytes[at]! << 16) | (bytes[at + 1]! << 8) | bytes[at + 2]!;
    const type = bytes[at + 3]!;
    const flags = bytes[at + 4]!;
    const streamId = readUint31(bytes, at + 5);
    if (length > MAX_FRAME_BYTES) return this.#handler.onFramingError(ErrorCode.FrameSizeError, 'frame too large');
    this.#type = type;
    this.#flags = flags;
    this.#streamId = streamId;
    this.#left = length;
    if (!this.#handler.onFrameHeader(type, flags, streamId, length) || this.#reading === Reading.Closed) return;
    if (type !== FrameType.Data) {
      this.#reading = Reading.Payload;
      if (length === 0) this.#complete(0, 0);
      return;
    }
    this.#padding = 0;
    if ((flags & Flag.Padded) === 0) {
      this.#reading = Reading.Data;
      if (length === 0) this.#completeData(0, 0);
    } else if (length > 0) this.#reading = Reading.PadLength;
    else this.#handler.onFramingError(ErrorCode.FrameSizeError, 'no padding length');
  }

  #readPayload(at: number, end: number): number {
    if (this.#block === NO_BLOCK && end - at >= this.#left) {
      const behind = at + this.#left;
      this.#complete(at, behind);
      return behind;
    }
    if (this.#block === NO_BLOCK) {
      this.#block = this.#memory.retain(this.#left);
      if (this.#block === NO_BLOCK) {
        this.#handler.onFramingError(ErrorCode.EnhanceYourCalm, 'memory is short');
        return end;
      }
      this.#blockBytes = 0;
    }
    const behind = Math.min(end, at + this.#left);
    this.#memory.copy(this.#block + this.#blockBytes, at, behind);
    this.#blockBytes += behind - at;
    this.#left -= behind - at;
    if (this.#left > 0) return behind;
    const start = this.#block;
    const length = this.#blockBytes;
    // Before: the handler may close the reader. The bytes stay until the turn ends.
    this.#release();
    this.#complete(start, start + length);
    return behind;
  }

  #complete(at: number, end: number): void {
    this.#reading = Reading.Header;
    this.#handler.onFrame(this.#type, this.#flags, this.#streamId, at, end);
  }

  #readPadLength(at: number): number {
    const padding = this.#memory.bytes[at]!;
    this.#left -= 1 + padding;
    if (this.#left < 0) {
      this.#handler.onFramingError(ErrorCode.ProtocolError, 'invalid padding');
      return at + 1;
    }
    this.#padding = padding;
    this.#reading = Reading.Data;
    this.#handler.onPadding(this.#streamId, 1 + padding);
    if (this.#left === 0 && this.#reading === Reading.Data) this.#completeData(at + 1, at + 1);
    return at + 1;
  }

  #readData(at: number, end: number): number {
    if (end - at >= this.#left) {
      const behind = at + this.#left;
      this.#completeData(at, behind);
      return behind;
    }
    this.#left -= end - at;
    this.#handler.onDataPart(this.#streamId, at, end, false);
    return end;
  }

  #completeData(at: number, end: number): void {
    this.#reading = this.#padding > 0 ? Reading.Padding : Reading.Header;
    this.#handler.onDataPart(this.#streamId, at, end, true);
  }

  #skipPadding(at: number, end: number): number {
    const length = Math.min(this.#padding, end - at);
    this.#padding -= length;
    if (this.#padding === 0) this.#reading = Reading.Header;
    return at + length;
  }

  #release(): void {
    if (this.#block !== NO_BLOCK) this.#memory.release(this.#block);
    this.#block = NO_BLOCK;
    this.#blockBytes = 0;
  }
}
