// Decodes the base64 text of a request body, which arrives in pieces. As in Envoy, only the end of a piece may be padded.

const PLAIN = /^[A-Za-z0-9+/]*={0,2}$/;

const BAD_TEXT = 'grpc_base_64_decode_failed';
const BAD_SIZE = 'grpc_base_64_decode_failed_bad_size';

export class Base64Decoder {
  /** The characters of an incomplete group of four. */
  #rest = '';

  /** The text that has arrived ends within a group of four characters. */
  get isWithinGroup(): boolean {
    return this.#rest !== '';
  }

  /** Returns the bytes of all groups that are complete, or the details of the refusal. `text` is the next piece. */
  decode(text: string, isLast: boolean): Uint8Array | string {
    const available = this.#rest + text;
    const length = available.length - (available.length % 4);
    if (isLast && length !== available.length) return BAD_SIZE;
    this.#rest = available.slice(length);
    const groups = available.slice(0, length);
    if (!PLAIN.test(groups)) return BAD_TEXT;
    const bytes = Buffer.from(groups, 'base64');
    // Bits after the last byte must be 0.
    const last = groups.slice(-4);
    return last.endsWith('=') && Buffer.from(last, 'base64').toString('base64') !== last ? BAD_TEXT : bytes;
  }
}
