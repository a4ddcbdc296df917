// Frames as text: how tests write what a peer sends, and read what a codec has sent.

import { FrameFlag, FrameType, frame, PREFACE, uint32 } from '../../e2e/harness/http2-frames.js';
import { DecoderBench, EncoderBench } from './hpack/bench.js';

export { FrameFlag, FrameType, frame, PREFACE, uint32 };

const NAMES = Object.keys(FrameType);
const ERRORS = [
  'NO_ERROR',
  'PROTOCOL_ERROR',
  'INTERNAL_ERROR',
  'FLOW_CONTROL_ERROR',
  'SETTINGS_TIMEOUT',
  'STREAM_CLOSED',
  'FRAME_SIZE_ERROR',
  'REFUSED_STREAM',
  'CANCEL',
  'COMPRESSION_ERROR',
  'CONNECT_ERROR',
  'ENHANCE_YOUR_CALM',
];

/** The other end of a codec: it encodes sections, and decodes the frames that the codec sends. */
export class FramePeer {
  readonly #encoder = new EncoderBench();
  readonly #decoder = new DecoderBench();
  /** The fragments of an incomplete header section. */
  readonly #fragments: Buffer[] = [];

  /** A header section in one frame. */
  headers(stream: number, list: readonly (readonly [string, string])[], endStream = true): Buffer {
    const flags = FrameFlag.EndHeaders | (endStream ? FrameFlag.EndStream : 0);
    return frame(FrameType.Headers, flags, stream, this.block(list));
  }

  /** A request without body; with `endStream` false one follows. */
  request(stream: number, path = '/', more: readonly (readonly [string, string])[] = [], endStream = true): Buffer {
    return this.headers(stream, [...requestList(path), ...more], endStream);
  }

  /** The list must not have pseudo-headers that the encoder does not know. */
  block(list: readonly (readonly [string, string])[]): Uint8Array {
    return this.#encoder.encode(list);
  }

  /** Describes sent frames, one text each. */
  read(bytes: Buffer): string[] {
    const found: string[] = [];
    let at = bytes.subarray(0, PREFACE.length).equals(PREFACE) ? PREFACE.length : 0;
    if (at > 0) found.push('preface');
    while (at < bytes.length) {
      const length = bytes.readUIntBE(at, 3);
      const payload = bytes.subarray(at + 9, at + 9 + length);
      if (payload.length < length) throw new Error('a frame is cut off');
      found.push(this.#describe(bytes[at + 3]!, bytes[at + 4]!, bytes.readUInt32BE(at + 5), payload));
      at += 9 + length;
    }
    return found;
  }

  #describe(type: number, flags: number, stream: number, payload: Buffer): string {
    const parts = [NAMES[type], stream > 0 && stream, this.#content(type, flags, payload)];
    const hasEnd = type === FrameType.Data || type === FrameType.Headers;
    if (hasEnd && flags & FrameFlag.EndStream) parts.push('end');
    return parts.filter(Boolean).join(' ');
  }

  /** Decodes a section when it is complete. */
  #section(flags: number, payload: Buffer): string {
    this.#fragments.push(payload);
    if ((flags & FrameFlag.EndHeaders) === 0) return 'cut';
    const fields = this.#decoder.decode(Buffer.concat(this.#fragments.splice(0)));
    return (fields ?? ['INVALID']).join('; ');
  }

  #content(type: number, flags: number, payload: Buffer): string {
    switch (type) {
      case FrameType.Data:
        return payload.length > 40 ? `${payload.length} bytes` : payload.toString('latin1');
      case FrameType.Headers:
      case FrameType.Continuation:
        return this.#section(flags, payload);
      case FrameType.RstStream:
        return ERRORS[payload.readUInt32BE(0)]!;
      case FrameType.GoAway:
        return `last ${payload.readUInt32BE(0)} ${ERRORS[payload.readUInt32BE(4)]}`;
      case FrameType.WindowUpdate:
        return `+${payload.readUInt32BE(0)}`;
      case FrameType.Settings: {
        if (flags & FrameFlag.Ack) return 'ack';
        const all = [];
        for (let at = 0; at < payload.length; at += 6)
          all.push(`${payload.readUInt16BE(at)}=${payload.readUInt32BE(at + 2)}`);
        return all.join(' ');
      }
      case FrameType.Ping:
        return `${flags & FrameFlag.Ack ? 'ack ' : ''}${payload.toString('latin1')}`;
      default:
        return `${payload.length} bytes`;
    }
  }
}

export function requestList(path: string, method = 'GET'): [string, string][] {
  return [
    [':method', method],
    [':scheme', 'http'],
    [':path', path],
    [':authority', 'a.test'],
  ];
}

export function settings(...pairs: (readonly [number, number])[]): Buffer {
  const payload = Buffer.concat(pairs.map(([id, value]) => Buffer.concat([Buffer.from([id >> 8, id]), uint32(value)])));
  return frame(FrameType.Settings, 0, 0, payload);
}

export function data(stream: number, text: string, endStream = false): Buffer {
  return frame(FrameType.Data, endStream ? FrameFlag.EndStream : 0, stream, Buffer.from(text, 'latin1'));
}

export function windowUpdate(stream: number, increment: number): Buffer {
  return frame(FrameType.WindowUpdate, 0, stream, uint32(increment));
}

export function resetFrame(stream: number, code = 8): Buffer {
  return frame(FrameType.RstStream, 0, stream, uint32(code));
}
