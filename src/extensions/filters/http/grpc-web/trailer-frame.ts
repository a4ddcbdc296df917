// Trailers as the last frame of a gRPC-Web body: its flag has the highest bit, and its content is lines like those of a head.

import { FRAME_HEADER_BYTES } from '../../../grpc/frame-scanner.js';
import type { HeaderBlock } from '../../../sdk.js';

const TRAILERS = 0x80;

export function trailerFrame(trailers: HeaderBlock): Uint8Array {
  let lines = '';
  for (let index = 0; index < trailers.size; index++) {
    if (!trailers.isRemoved(index)) lines += `${trailers.name(index).toLowerCase()}:${trailers.value(index)}\r\n`;
  }
  const frame = Buffer.alloc(FRAME_HEADER_BYTES + lines.length);
  frame[0] = TRAILERS;
  frame.writeUInt32BE(lines.length, 1);
  frame.write(lines, FRAME_HEADER_BYTES, 'latin1');
  return frame;
}
