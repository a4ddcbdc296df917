// HTTP/2 frame by frame (RFC 9113), for clients that send what no library sends.

export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

export const FrameType = {
  Data: 0,
  Headers: 1,
  Priority: 2,
  RstStream: 3,
  Settings: 4,
  PushPromise: 5,
  Ping: 6,
  GoAway: 7,
  WindowUpdate: 8,
  Continuation: 9,
};

export const FrameFlag = {
  /** For SETTINGS and PING. */
  Ack: 1,
  EndStream: 1,
  EndHeaders: 4,
  Padded: 8,
  Priority: 32,
};

export function frame(type: number, flags: number, stream: number, payload: Uint8Array = new Uint8Array()): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream >>> 0, 5);
  return Buffer.concat([head, payload]);
}

/** Encodes a block of fields, none of which is added to the dynamic table (RFC 7541 §6.2.2). */
export function fields(all: Readonly<Record<string, string>>): Buffer {
  const parts = Object.entries(all).flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]);
  return Buffer.concat(parts);
}

/** Encodes the fields of a request. */
export function requestFields(path: string, more: Readonly<Record<string, string>> = {}): Buffer {
  return fields({ ':method': 'GET', ':scheme': 'http', ':authority': 'localhost', ':path': path, ...more });
}

/** Encodes a whole request without a body. */
export function request(stream: number, path: string, more?: Readonly<Record<string, string>>): Buffer {
  return frame(FrameType.Headers, FrameFlag.EndStream | FrameFlag.EndHeaders, stream, requestFields(path, more));
}

export function reset(stream: number, code = 8): Buffer {
  return frame(FrameType.RstStream, 0, stream, uint32(code));
}

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value >>> 0);
  return bytes;
}

/** Returns the connection preface of a client. */
export function opening(): Buffer {
  return Buffer.concat([PREFACE, frame(FrameType.Settings, 0, 0)]);
}

/** Encodes a string without Huffman coding (RFC 7541 §5.2). */
function text(value: string): Buffer {
  const bytes = Buffer.from(value, 'latin1');
  return Buffer.concat([integer(bytes.length, 7), bytes]);
}

/** Encodes an integer whose preceding bits are 0 (RFC 7541 §5.1). */
function integer(value: number, prefixBits: number): Buffer {
  const max = (1 << prefixBits) - 1;
  if (value < max) return Buffer.from([value]);
  const bytes = [max];
  let rest = value - max;
  for (; rest >= 128; rest >>>= 7) bytes.push((rest & 127) | 128);
  return Buffer.from([...bytes, rest]);
}
