// Encodes the frames of a response body as base64, each with its own padding, so that a client can decode every frame by itself.

import { FrameScanner } from '../../../grpc/frame-scanner.js';

const NOTHING = new Uint8Array();
/** Bytes of a group of four characters. */
const GROUP = 3;

export class Base64Frames {
  readonly #frames = new FrameScanner();
  /** Bytes of the current frame that do not fill a group. */
  #rest: Buffer = Buffer.alloc(0);

  /** Encodes bytes[start, end), the next piece of the body. Bytes of an incomplete group are kept for the next piece. */
  encode(bytes: Uint8Array, start: number, end: number): Uint8Array {
    let text = '';
    for (let at = start; at < end; ) {
      const next = this.#frames.next(bytes, at, end);
      text += this.#encode(bytes.subarray(at, next), this.#frames.isBetweenFrames);
      at = next;
    }
    return Buffer.from(text, 'latin1');
  }

  /** Returns what has been kept of a frame that is not complete when the body ends, and `frame`, the trailers. */
  end(frame: Uint8Array = NOTHING): Uint8Array {
    return Buffer.from(this.#encode(NOTHING, true) + Buffer.from(frame).toString('base64'), 'latin1');
  }

  #encode(piece: Uint8Array, isPadded: boolean): string {
    const all = Buffer.concat([this.#rest, piece]);
    const length = isPadded ? all.length : all.length - (all.length % GROUP);
    this.#rest = all.subarray(length);
    return all.toString('base64', 0, length);
  }
}
