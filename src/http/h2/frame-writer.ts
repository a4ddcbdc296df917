// Sends the frames of a connection, except header sections.

import type { Memory } from '../../io/memory.js';
import type { ByteSink } from '../codec/streams.js';
import { ACK, type ErrorCode, Flag, FRAME_HEADER_BYTES, FrameType, writeFrameHeader, writeUint32 } from './frames.js';
import { SETTING_BYTES, type Setting, writeSettings } from './settings.js';

/** Body bytes up to this number are copied after their frame header, which costs less than another range. */
const MAX_COPIED = 512;
const MAX_TEXT = 80;

export class FrameWriter {
  readonly #memory: Memory;
  readonly #sink: ByteSink;
  readonly #count: (isControl: boolean) => void;

  /** `count` is called after each frame. */
  constructor(memory: Memory, sink: ByteSink, count: (isControl: boolean) => void) {
    this.#memory = memory;
    this.#sink = sink;
    this.#count = count;
  }

  /** Sends bytes[offset, offset + length), which stay valid until the turn ends. */
  data(streamId: number, offset: number, length: number, endStream: boolean): void {
    const memory = this.#memory;
    const isCopied = length <= MAX_COPIED;
    const start = memory.scratch(isCopied ? FRAME_HEADER_BYTES + length : FRAME_HEADER_BYTES);
    writeFrameHeader(memory.bytes, start, length, FrameType.Data, endStream ? Flag.EndStream : 0, streamId);
    if (isCopied) {
      memory.copy(start + FRAME_HEADER_BYTES, offset, offset + length);
      this.#sink.send(start, FRAME_HEADER_BYTES + length);
    } else {
      this.#sink.send(start, FRAME_HEADER_BYTES);
      this.#sink.send(offset, length);
    }
    this.#count(false);
  }

  settings(settings: readonly (readonly [Setting, number])[]): void {
    const at = this.#begin(settings.length * SETTING_BYTES, FrameType.Settings, 0, 0);
    writeSettings(this.#memory.bytes, at, settings);
    this.#end(at, settings.length * SETTING_BYTES);
  }

  settingsAck(): void {
    this.#end(this.#begin(0, FrameType.Settings, ACK, 0), 0);
  }

  ping(): void {
    const at = this.#begin(8, FrameType.Ping, 0, 0);
    this.#memory.bytes.fill(0, at, at + 8);
    this.#end(at, 8);
  }

  /** Answers a PING with the payload at `payload`. */
  pingAck(payload: number): void {
    const at = this.#begin(8, FrameType.Ping, ACK, 0);
    this.#memory.copy(at, payload, payload + 8);
    this.#end(at, 8);
  }

  windowUpdate(streamId: number, increment: number): void {
    const at = this.#begin(4, FrameType.WindowUpdate, 0, streamId);
    writeUint32(this.#memory.bytes, at, increment);
    this.#end(at, 4);
  }

  reset(streamId: number, code: ErrorCode): void {
    const at = this.#begin(4, FrameType.RstStream, 0, streamId);
    writeUint32(this.#memory.bytes, at, code);
    this.#end(at, 4);
  }

  goAway(lastStreamId: number, code: ErrorCode, text = ''): void {
    const length = Math.min(MAX_TEXT, text.length);
    const at = this.#begin(8 + length, FrameType.GoAway, 0, 0);
    const { bytes } = this.#memory;
    writeUint32(bytes, at, lastStreamId);
    writeUint32(bytes, at + 4, code);
    this.#memory.write(at + 8, text.slice(0, length));
    this.#end(at, 8 + length);
  }

  /** Writes the header of a control frame. Returns the offset of its payload. */
  #begin(length: number, type: FrameType, flags: number, streamId: number): number {
    const start = this.#memory.scratch(FRAME_HEADER_BYTES + length);
    writeFrameHeader(this.#memory.bytes, start, length, type, flags, streamId);
    return start + FRAME_HEADER_BYTES;
  }

  #end(payload: number, length: number): void {
    this.#sink.send(payload - FRAME_HEADER_BYTES, FRAME_HEADER_BYTES + length);
    this.#count(true);
  }
}
