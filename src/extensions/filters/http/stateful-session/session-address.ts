// The address of a host in a client's cookie or header: Base64 of the text, or of Envoy's message Cookie with the text and an expiry.

/** Longest text that is read: a Unix socket's path has at most 108 bytes. */
const MAX_ENCODED = 1024;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** Returns the bytes of padded Base64; undefined if `text` is none. */
function decoded(text: string): Buffer | undefined {
  return text !== '' && text.length <= MAX_ENCODED && BASE64.test(text) ? Buffer.from(text, 'base64') : undefined;
}

/** Returns the address in the value of a header; '' if there is none. */
export function addressOfHeader(value: string): string {
  return decoded(value)?.toString('latin1') ?? '';
}

/** Returns the address in the value of a cookie; '' if there is none, or it has expired. `nowSeconds`: since 1970. */
export function addressOfCookie(value: string, nowSeconds: number): string {
  const bytes = decoded(value);
  if (bytes === undefined) return '';
  const message = parse(bytes);
  // A cookie of an older Envoy has the text only.
  if (message === undefined) return bytes.toString('latin1');
  return message.expires !== 0n && BigInt(nowSeconds) > message.expires ? '' : message.address;
}

export function headerOf(address: string): string {
  return Buffer.from(address, 'latin1').toString('base64');
}

/** Returns the value of a cookie. `expires`: seconds since 1970; 0: never. */
export function cookieOf(address: string, expires: number): string {
  const text = Buffer.from(address, 'latin1');
  const message = [0x0a, ...varint(BigInt(text.length)), ...text];
  if (expires > 0) message.push(0x10, ...varint(BigInt(expires)));
  return Buffer.from(message).toString('base64');
}

function varint(value: bigint): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  bytes.push(Number(rest));
  return bytes;
}

interface SessionCookie {
  readonly address: string;
  readonly expires: bigint;
}

/** Returns undefined if the bytes are not a message. Unknown fields are skipped. */
function parse(bytes: Buffer): SessionCookie | undefined {
  const reader = new Reader(bytes);
  let address = '';
  let expires = 0n;
  while (!reader.isAtEnd) {
    const tag = reader.varint();
    const field = tag >> 3n;
    const wireType = Number(tag & 7n);
    if (reader.isBroken || field === 0n) return undefined;
    if (wireType === 0) {
      const value = reader.varint();
      if (field === 2n) expires = value;
    } else if (wireType === 2) {
      const value = reader.take(reader.varint());
      if (field === 1n) address = value.toString('latin1');
    } else if (wireType === 1) reader.take(8n);
    else if (wireType === 5) reader.take(4n);
    else return undefined;
    if (reader.isBroken) return undefined;
  }
  return { address, expires };
}

class Reader {
  isBroken = false;
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  varint(): bigint {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.#bytes[this.#at++];
      if (byte === undefined) break;
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return BigInt.asUintN(64, value);
    }
    this.isBroken = true;
    return 0n;
  }

  take(length: bigint): Buffer {
    const start = this.#at;
    if (length > BigInt(this.#bytes.length - start)) this.isBroken = true;
    else this.#at += Number(length);
    return this.#bytes.subarray(start, this.#at);
  }
}
