// Detects the HTTP version from the first bytes of a plaintext connection: the HTTP/2 preface or the first HTTP/1 request line.
//
// What counts as a request line follows Envoy's parser, because filter chains must be chosen as in Envoy.

export type HttpVersion = 'http/1.0' | 'http/1.1' | 'h2c';

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');
const LINE_FEED = 10;
const SPACE = 32;
const FIRST_CHARACTER = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]/;
const METHOD = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const VERSION = /^HTTP\/[0-9]\.[0-9]$/;

/**
 * Returns the HTTP version, 'incomplete' if more bytes are needed, or 'invalid' if the connection is not HTTP.
 * @param bytes at least one byte, from the beginning of the connection
 */
export function httpVersionOf(bytes: Uint8Array): HttpVersion | 'incomplete' | 'invalid' {
  const seen = Math.min(bytes.length, PREFACE.length);
  if (Buffer.compare(bytes.subarray(0, seen), PREFACE.subarray(0, seen)) === 0)
    return seen < PREFACE.length ? 'incomplete' : 'h2c';
  if (!FIRST_CHARACTER.test(String.fromCharCode(bytes[0]!))) return 'invalid';
  const end = bytes.indexOf(LINE_FEED);
  if (end < 0) return 'incomplete';
  const [method, target, version] = partsOf(bytes.subarray(0, end));
  if (target === '' || !METHOD.test(method) || !isTarget(target, method === 'CONNECT')) return 'invalid';
  if (version !== '' && !VERSION.test(version)) return 'invalid';
  return version === 'HTTP/1.1' ? 'http/1.1' : 'http/1.0';
}

/**
 * Splits a line into method, target and version at runs of spaces and control characters; a missing part is ''. A line without a version
 * is HTTP/0.9. The version may contain spaces. A regular expression for the whole line would backtrack over long runs of spaces.
 */
function partsOf(line: Uint8Array): readonly [method: string, target: string, version: string] {
  let end = line.length;
  while (end > 0 && line[end - 1]! <= SPACE) end--;
  const skip = (at: number, areSpaces: boolean): number => {
    while (at < end && line[at]! <= SPACE === areSpaces) at++;
    return at;
  };
  const text = (from: number, to: number) =>
    Buffer.from(line.buffer, line.byteOffset + from, to - from).toString('latin1');
  const methodEnd = skip(0, false);
  const target = skip(methodEnd, true);
  const targetEnd = skip(target, false);
  return [text(0, methodEnd), text(target, targetEnd), text(skip(targetEnd, true), end)];
}

const PATH = /^[/*][\t\f!-~]*$/;
const SCHEME = /^[A-Za-z][A-Za-z0-9+\-.]*:\/\//;
const AUTHORITY_AND_PATH = /^([A-Za-z0-9!$%&'()*+,\-.:;=@[\]_~]*)([/?][\t\f!-~]*)?$/;

function isTarget(target: string, isConnect: boolean): boolean {
  if (target[0] === '/' || target[0] === '*') return PATH.test(target);
  const scheme = isConnect ? '' : SCHEME.exec(target)?.[0];
  if (scheme === undefined) return false;
  const rest = AUTHORITY_AND_PATH.exec(target.slice(scheme.length));
  return rest !== null && !rest[1]!.includes('@@');
}
