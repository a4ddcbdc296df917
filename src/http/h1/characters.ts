// Which bytes may stand where in an HTTP/1 head (RFC 9110 section 5.6, RFC 3986): tables of 256 entries, 1 is allowed.

const LETTERS_AND_DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

/** Methods and field names. */
export const TOKEN = table(`!#$%&'*+-.^_\`|~${LETTERS_AND_DIGITS}`);

/** Field values and reason phrases: visible bytes, space, tab, and those above 127. */
export const TEXT = tableWhere((byte) => byte === 9 || (byte >= 32 && byte !== 127));

/** Request targets: neither controls, nor space, nor a fragment. Bytes above 127 occur and are passed on, as Envoy does. */
export const TARGET = tableWhere((byte) => byte > 32 && byte !== 127 && byte !== 35);

/** A host without its port: registered names and IPv4 addresses. */
export const HOST = table(`-._~%!$&'()*+,;=${LETTERS_AND_DIGITS}`);

/** Between the brackets of an IP literal. */
export const IP_LITERAL = table(`:.-_~%${LETTERS_AND_DIGITS}`);

/** Chunk extensions: visible ASCII, space and tab. */
export const EXTENSION = tableWhere((byte) => byte === 9 || (byte >= 32 && byte < 127));

/** Value of a hexadecimal digit; 255 for every other byte. */
export const HEX_VALUE = /* @__PURE__ */ Uint8Array.from({ length: 256 }, (_, byte) => {
  const digit = '0123456789abcdef'.indexOf(String.fromCharCode(byte).toLowerCase());
  return digit < 0 ? 255 : digit;
});

export const enum Char {
  Tab = 9,
  Lf = 10,
  Cr = 13,
  Space = 32,
  Asterisk = 42,
  Comma = 44,
  Dot = 46,
  Slash = 47,
  Zero = 48,
  Nine = 57,
  Colon = 58,
  Semicolon = 59,
  Question = 63,
  OpenBracket = 91,
  CloseBracket = 93,
}

function table(characters: string): Uint8Array {
  return tableWhere((byte) => characters.includes(String.fromCharCode(byte)));
}

function tableWhere(isAllowed: (byte: number) => boolean): Uint8Array {
  return Uint8Array.from({ length: 256 }, (_, byte) => (isAllowed(byte) ? 1 : 0));
}
