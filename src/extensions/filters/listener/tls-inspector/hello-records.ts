// Finds the first handshake message in the records of a TLS connection (RFC 8446, section 5.1), which a client may divide into any
// number of records, and its peer receives in any number of segments.
//
// What counts as TLS follows BoringSSL, because filter chains must be chosen as in Envoy.

/** Type, version and length. */
const HEADER_BYTES = 5;
const ALERT = 21;
const HANDSHAKE = 22;
/** The first byte of the versions SSL 3.0 to TLS 1.3. */
const MAJOR_VERSION = 3;
/** Plaintext, and room for the overhead of encryption, which BoringSSL allows in any record. */
const MAX_RECORD_BYTES = 16384 + 64 + 256;
const MAX_PLAINTEXT_BYTES = 16384;
const MAX_EMPTY_RECORDS = 32;
const MAX_WARNINGS = 4;

/** Type and length of a handshake message. */
const MESSAGE_HEADER_BYTES = 4;
const MAX_MESSAGE_BYTES = 16384;

export type RecordsState =
  /** More bytes are needed. */
  | 'incomplete'
  /** These are not the first bytes of a TLS client. */
  | 'invalid'
  /** The client has closed the connection. */
  | 'closed'
  | 'complete';

/** Reused for all connections of a thread: it keeps no state between two calls of read(). */
export class HelloRecords {
  /** Set by read() if the state is complete: the type of the message and its content, valid until the next call. */
  type = 0;
  content: Uint8Array = new Uint8Array();
  /** Set by read(): how many of the bytes belong to the records that were read. */
  processed = 0;
  /** The message, if it is divided into records. Its size does not depend on what clients claim. */
  readonly #joined = new Uint8Array(MESSAGE_HEADER_BYTES + MAX_MESSAGE_BYTES);

  /** @param bytes all bytes of the connection so far */
  read(bytes: Uint8Array): RecordsState {
    let joined = 0;
    let empty = 0;
    let warnings = 0;
    for (let at = 0; ; ) {
      this.processed = at;
      if (bytes.length < at + HEADER_BYTES) return 'incomplete';
      this.processed = at + HEADER_BYTES;
      const type = bytes[at]!;
      const length = (bytes[at + 3]! << 8) | bytes[at + 4]!;
      if (bytes[at + 1] !== MAJOR_VERSION || length > MAX_RECORD_BYTES) return 'invalid';
      const begin = at + HEADER_BYTES;
      at = begin + length;
      if (bytes.length < at) return 'incomplete';
      this.processed = at;
      if (length > MAX_PLAINTEXT_BYTES || (length === 0 && ++empty > MAX_EMPTY_RECORDS)) return 'invalid';
      if (type === ALERT) {
        const state = stateAfterAlert(bytes.subarray(begin, at), ++warnings);
        if (state !== 'incomplete') return state;
        continue;
      }
      if (type !== HANDSHAKE) return 'invalid';
      let message = bytes.subarray(begin, at);
      if (joined > 0 || !isWhole(message)) {
        // Nothing may follow the message, so that what does not fit is an error.
        if (joined + length > this.#joined.length) return 'invalid';
        this.#joined.set(message, joined);
        joined += length;
        message = this.#joined.subarray(0, joined);
      }
      if (message.length < MESSAGE_HEADER_BYTES) continue;
      const expected = MESSAGE_HEADER_BYTES + lengthOf(message);
      if (expected > this.#joined.length || message.length > expected) return 'invalid';
      if (message.length === expected) return this.#found(message);
    }
  }

  #found(message: Uint8Array): 'complete' {
    this.type = message[0]!;
    this.content = message.subarray(MESSAGE_HEADER_BYTES);
    return 'complete';
  }
}

const WARNING = 1;
const CLOSE_NOTIFY = 0;

function stateAfterAlert(alert: Uint8Array, count: number): RecordsState {
  if (alert.length !== 2 || alert[0] !== WARNING) return 'invalid';
  if (alert[1] === CLOSE_NOTIFY) return 'closed';
  return count > MAX_WARNINGS ? 'invalid' : 'incomplete';
}

function isWhole(message: Uint8Array): boolean {
  return message.length >= MESSAGE_HEADER_BYTES && message.length >= MESSAGE_HEADER_BYTES + lengthOf(message);
}

function lengthOf(message: Uint8Array): number {
  return (message[1]! << 16) | (message[2]! << 8) | message[3]!;
}
