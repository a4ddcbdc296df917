// Text of modules and bytes of heads. A head has one character per byte; a module has text.

/** Returns a header value as text: decoded from UTF-8, or from Latin-1 if it is not valid UTF-8. */
export function textOfHead(value: string): string {
  for (let i = 0; i < value.length; i++) {
    if (value.charCodeAt(i) > 127) return decoded(value);
  }
  return value;
}

function decoded(value: string): string {
  try {
    return UTF8.decode(Buffer.from(value, 'latin1'));
  } catch {
    return value;
  }
}

const UTF8 = new TextDecoder('utf-8', { fatal: true });

export function bytesOf(body: string | Uint8Array): Uint8Array {
  if (typeof body === 'string') return Buffer.from(body);
  if (body instanceof Uint8Array) return body;
  throw new TypeError('a body is a string or a Uint8Array');
}
