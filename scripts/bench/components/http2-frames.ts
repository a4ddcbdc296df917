// The HTTP/2 that simulated clients and hosts speak (RFC 9113, RFC 7541): heads whose fields are in the peer's dynamic table from the second one on, as
// real peers send them, and a reader of frames.

const enum FrameType {
  Data = 0,
  Headers = 1,
  Settings = 4,
  WindowUpdate = 8,
}

const enum FrameFlag {
  EndStream = 1,
  EndHeaders = 4,
}

const FRAME_HEADER_BYTES = 9;
const STREAM_ID_AT = 5;
const FIRST_DYNAMIC = 62;
const MAX_WINDOW = 2 ** 31 - 1;
const DEFAULT_WINDOW = 65_535;

/** A head in both forms: for the first message of a connection, and for all later ones. */
interface Head {
  first: Buffer;
  later: Buffer;
}

/**
 * Returns the header sections. `indexed` are entries of the static table (RFC 7541, appendix A); `names` those whose name is in it, by
 * their index, with their values.
 */
function head(indexed: readonly number[], names: ReadonlyArray<readonly [index: number, value: string]>): Head {
  const known = indexed.map((index) => 0x80 | index);
  const literals = names.flatMap(([index, value]) => [0x40 | index, value.length, ...Buffer.from(value, 'latin1')]);
  const references = names.map((_, position) => 0x80 | (FIRST_DYNAMIC + names.length - 1 - position));
  return { first: Buffer.from([...known, ...literals]), later: Buffer.from([...known, ...references]) };
}

// GET, http; :path, :authority, accept, user-agent.
const REQUEST = head(
  [2, 6],
  [
    [4, '/some/path?x=1'],
    [1, '127.0.0.1:18080'],
    [19, '*/*'],
    [58, 'curl/7.88.1'],
  ],
);
// 200; server, date, content-type, content-length.
const RESPONSE = head(
  [8],
  [
    [54, 'up'],
    [33, 'Fri, 20 Nov 2026 08:43:06 GMT'],
    [31, 'text/plain'],
    [28, '128'],
  ],
);
const BODY = Buffer.alloc(128, 'x');

function frame(type: FrameType, flags: number, payload: Buffer): Buffer {
  const header = Buffer.alloc(FRAME_HEADER_BYTES);
  header.writeUIntBE(payload.length, 0, 3);
  header[3] = type;
  header[4] = flags;
  return Buffer.concat([header, payload]);
}

/** Settings without a change, and a window for the connection that is never used up. */
const START = Buffer.concat([
  frame(FrameType.Settings, 0, Buffer.alloc(0)),
  frame(FrameType.WindowUpdate, 0, Buffer.from(uint32(MAX_WINDOW - DEFAULT_WINDOW))),
]);

function uint32(value: number): number[] {
  return [value >>> 24, (value >>> 16) & 0xff, (value >>> 8) & 0xff, value & 0xff];
}

/** What clients send first. */
export const CLIENT_START = Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1'), START]);
/** What hosts send first. */
export const HOST_START = START;

function messages(heads: Head, endsWithHead: boolean): { first: Buffer; later: Buffer } {
  const flags = FrameFlag.EndHeaders | (endsWithHead ? FrameFlag.EndStream : 0);
  const body = endsWithHead ? Buffer.alloc(0) : frame(FrameType.Data, FrameFlag.EndStream, BODY);
  const message = (section: Buffer) => Buffer.concat([frame(FrameType.Headers, flags, section), body]);
  return { first: message(heads.first), later: message(heads.later) };
}

const REQUESTS = messages(REQUEST, true);
const RESPONSES = messages(RESPONSE, false);

/** The sending side of a connection. */
export class Http2Sender {
  readonly #messages: { first: Buffer; later: Buffer };
  #isFirst = true;

  constructor(sends: 'requests' | 'responses') {
    this.#messages = sends === 'requests' ? REQUESTS : RESPONSES;
  }

  /** Writes a message on a stream, and returns the offset behind it. */
  write(out: Uint8Array, at: number, stream: number): number {
    const message = this.#isFirst ? this.#messages.first : this.#messages.later;
    this.#isFirst = false;
    out.set(message, at);
    for (let from = at; from < at + message.length; ) {
      out.set(uint32(stream), from + STREAM_ID_AT);
      from += FRAME_HEADER_BYTES + ((out[from]! << 16) | (out[from + 1]! << 8) | out[from + 2]!);
    }
    return at + message.length;
  }
}

/** Finds the heads in what a connection sends. */
export class Http2Reader {
  #headerBytes = 0;
  readonly #header = new Uint8Array(FRAME_HEADER_BYTES);
  /** Bytes of the current payload that are still to come. At first, a client's preface. */
  #skipped: number;

  constructor(sentBy: 'client' | 'host') {
    this.#skipped = sentBy === 'client' ? 24 : 0;
  }

  /** Adds the streams of the HEADERS frames to `streams`. */
  read(bytes: Uint8Array, from: number, end: number, streams: number[]): void {
    for (let at = from; at < end; ) {
      if (this.#skipped > 0) {
        const step = Math.min(this.#skipped, end - at);
        this.#skipped -= step;
        at += step;
        continue;
      }
      this.#header[this.#headerBytes++] = bytes[at++]!;
      if (this.#headerBytes < FRAME_HEADER_BYTES) continue;
      this.#headerBytes = 0;
      const header = this.#header;
      this.#skipped = (header[0]! << 16) | (header[1]! << 8) | header[2]!;
      if (header[3] === FrameType.Headers)
        streams.push(((header[5]! << 24) | (header[6]! << 16) | (header[7]! << 8) | header[8]!) >>> 0);
    }
  }
}
