// A reference parser of HTTP/1 as defined by RFC 9110 and 9112 that refuses what Baton refuses: slow, simple, and without any
// code of the codec, so that the two agree only where both are right. All text is Latin-1, one character per byte.

export interface ReadLimits {
  readonly maxHeadBytes: number;
  readonly maxHeaders: number;
}

export interface ReadMessage {
  /** Method and path, or the status. */
  readonly start: string;
  readonly minor: number;
  /** Names in lower case; rewritten fields are last. */
  readonly fields: Fields;
  /** Whether the message closes the connection. */
  readonly isLast: boolean;
  readonly expectsContinue: boolean;
  /** As far as it is present and valid. */
  readonly body: string;
  readonly trailers: Fields;
  readonly end: 'complete' | 'missing' | 'invalid';
}

export interface Conversation {
  readonly messages: readonly ReadMessage[];
  /** What follows the last complete message: nothing, something invalid, or the start of one that may still be either. */
  readonly rest: 'nothing' | 'invalid' | 'incomplete';
}

type Fields = readonly (readonly [name: string, value: string])[];

interface Section {
  /** Name, value, and the raw text after the colon. */
  readonly lines: readonly (readonly [string, string, string])[];
  readonly end: number;
}

class Invalid extends Error {}
class Incomplete extends Error {}

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const REQUEST_LINE = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+) ([^\x00-\x20\x7f-\xff]+) HTTP\/1\.([01])$/;
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9][0-9]{2})(?: [\t\x20-\x7e\x80-\xff]*)?$/;
const AUTHORITY = /^(?:\[[0-9A-Za-z:._~%-]+\]|[0-9A-Za-z\-._~%!$&'()*+,;=]+)(?::[0-9]*)?$/;
const URL_AUTHORITY = /^(?:\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z\-.]+)(?::0*([0-9]{1,5}))?$/;
const CHUNK_LINE = /^([0-9A-Fa-f]{1,16})(?:;([\t\x20-\x7e]*))?$/;
/** Old hosts put whitespace after the size. */
const OLD_CHUNK_LINE = /^([0-9A-Fa-f]{1,16})[ \t]*(?:;([\t\x20-\x7e]*))?$/;
const MAX_EXTENSION_BYTES = 16384;
const TOO_MANY_NAMES = 10;
/** Names that a client may not list in Connection. */
const LASTING = /^(?::.*|host|x-forwarded-(?:for|host|proto))$/i;

/** Reads all requests of a connection, up to the last one. */
export function readRequests(text: string, limits: ReadLimits): Conversation {
  return readAll(text, (at) => readRequest(text, at, limits));
}

/** Reads the response to one request with `method`, and the informational ones before it. */
export function readResponse(text: string, method: string, limits: ReadLimits): Conversation {
  let isOver = false;
  return readAll(text, (at) => {
    if (isOver) return undefined;
    const message = readResponseMessage(text, at, method, limits);
    isOver = Number(message.start) >= 200;
    return message;
  });
}

type Read = ReadMessage & { readonly behind: number };

function readAll(text: string, next: (at: number) => Read | undefined): Conversation {
  const messages: ReadMessage[] = [];
  try {
    for (let at = 0; at < text.length; ) {
      const message = next(at);
      if (message === undefined) break;
      messages.push(message);
      if (message.end !== 'complete' || message.isLast) break;
      at = message.behind;
    }
  } catch (error) {
    if (error instanceof Invalid) return { messages, rest: 'invalid' };
    if (error instanceof Incomplete) return { messages, rest: 'incomplete' };
    throw error;
  }
  return { messages, rest: 'nothing' };
}

function readRequest(text: string, from: number, limits: ReadLimits): Read {
  const [emptyLines] = /^(?:\r?\n)*/.exec(text.slice(from))!;
  const start = from + emptyLines.length;
  const lineEnd = endOfLine(text, start);
  const [, method = '', target = '', version = ''] = matched(REQUEST_LINE, text.slice(start, lineEnd));
  const minor = Number(version);
  const { lines, end } = readFields(text, lineEnd + 2, limits);
  if (end - from > limits.maxHeadBytes) throw new Invalid('a header section that is too long');
  // The target is invalid, but the request is logged with its fields: an incomplete one is only incomplete.
  if (target.includes('#')) throw new Invalid('a fragment');
  const hosts = valuesOf(lines, 'host');
  if (hosts.length > 1 || (hosts.length === 0 && minor === 1)) throw new Invalid('hosts');
  if (hosts.some((host) => host !== '' && !AUTHORITY.test(host))) throw new Invalid('host');
  const { path, host } = targetOf(method, target);
  if (listOf(lines, 'connection').length >= TOO_MANY_NAMES) throw new Invalid('connection');
  if (listOf(lines, 'connection').some((name) => LASTING.test(name))) throw new Invalid('connection');
  const { isChunked, length } = framingOf(lines);
  if (isChunked && minor === 0) throw new Invalid('a coding in HTTP/1.0');
  let fields = fieldsOf(lines);
  if (host !== undefined) fields = [...fields.filter(([name]) => name !== 'host'), ['host', host]];
  return {
    ...{ start: `${method} ${path}`, minor, fields: withPlainLength(fields, lines, length) },
    isLast: endsConnection(lines, minor),
    expectsContinue: minor === 1 && /^100-continue$/i.test(valuesOf(lines, 'expect').join()),
    ...readBody(text, end, isChunked, length ?? 0, limits),
  };
}

function readResponseMessage(text: string, from: number, method: string, limits: ReadLimits): Read {
  const { head, end } = modernHead(text, from, true);
  const lineEnd = endOfLine(head, 0);
  const [, version = '', start = ''] = matched(STATUS_LINE, head.slice(0, lineEnd));
  const minor = Number(version);
  const status = Number(start);
  if (status === 101) throw new Invalid('an unrequested switch');
  const { lines } = readFields(head, lineEnd + 2, limits);
  if (end - from > limits.maxHeadBytes) throw new Invalid('a header section that is too long');
  const { isChunked, length } = framingOf(lines);
  const hasNoBody = status < 200 || status === 204;
  if (isChunked && (minor === 0 || hasNoBody)) throw new Invalid('a coding where none may be');
  if (hasNoBody && (length ?? 0) > 0) throw new Invalid('a length where none may be');
  const message = {
    ...{ start, minor, fields: withPlainLength(fieldsOf(lines), lines, length) },
    ...{ isLast: status >= 200 && endsConnection(lines, minor), expectsContinue: false },
  };
  if (hasNoBody || status === 304 || method === 'HEAD')
    return { ...message, body: '', trailers: [], end: 'complete', behind: end };
  if (isChunked || length !== undefined)
    return { ...message, ...readBody(text, end, isChunked, length ?? 0, limits, true) };
  return { ...message, body: text.slice(end), trailers: [], end: 'complete', behind: text.length };
}

/** Returns the path, and the authority if the target has one. */
function targetOf(method: string, target: string): { path: string; host?: string } {
  if (method === 'CONNECT') throw new Invalid('the tests open no tunnels');
  if (target.startsWith('/') || (target === '*' && method === 'OPTIONS')) return { path: target };
  const [, host = '', rest = ''] = matched(/^https?:\/\/([^/?]*)(.*)$/i, target);
  const [, port = '0'] = matched(URL_AUTHORITY, host);
  if (Number(port) > 65535) throw new Invalid('port');
  if (rest === '') return { path: '/', host };
  return { path: rest.startsWith('/') ? rest : `/${rest}`, host };
}

function readFields(text: string, at: number, { maxHeaders }: ReadLimits): Section {
  const lines: [string, string, string][] = [];
  for (;;) {
    const lineEnd = endOfLine(text, at);
    const line = text.slice(at, lineEnd);
    at = lineEnd + 2;
    if (line === '') return { lines, end: at };
    const colon = line.indexOf(':');
    const raw = line.slice(colon + 1);
    if (colon < 0 || !TOKEN.test(line.slice(0, colon)) || !VALUE.test(raw)) throw new Invalid('field');
    if (lines.length === maxHeaders) throw new Invalid('too many fields');
    lines.push([line.slice(0, colon).toLowerCase(), raw.replace(/^[ \t]+|[ \t]+$/g, ''), raw]);
  }
}

function framingOf(lines: Section['lines']): { isChunked: boolean; length: number | undefined } {
  const codings = valuesOf(lines, 'transfer-encoding');
  const lengths = valuesOf(lines, 'content-length');
  if (codings.length + lengths.length > 1) throw new Invalid('two ends of the body');
  if (codings.some((coding) => coding.toLowerCase() !== 'chunked')) throw new Invalid('coding');
  const [length] = lengths;
  if (length === undefined) return { isChunked: codings.length > 0, length: undefined };
  if (!/^[0-9]{1,16}$/.test(length) || !Number.isSafeInteger(Number(length))) throw new Invalid('length');
  return { isChunked: false, length: Number(length) };
}

type Body = Pick<Read, 'body' | 'trailers' | 'end' | 'behind'>;

function readBody(
  text: string,
  at: number,
  isChunked: boolean,
  length: number,
  limits: ReadLimits,
  isResponse = false,
): Body {
  if (isChunked) return readChunks(text, at, limits, isResponse);
  const body = text.slice(at, at + length);
  const behind = at + body.length;
  return { body, trailers: [], end: body.length < length ? 'missing' : 'complete', behind };
}

function readChunks(text: string, at: number, limits: ReadLimits, isResponse: boolean): Body {
  let body = '';
  let extensionBytes = 0;
  try {
    for (;;) {
      const lineEnd = endOfLine(text, at);
      const [, digits = '', extension = ''] = matched(
        isResponse ? OLD_CHUNK_LINE : CHUNK_LINE,
        text.slice(at, lineEnd),
      );
      const size = Number(`0x${digits}`);
      extensionBytes += extension.length;
      if (!Number.isSafeInteger(size) || extensionBytes > MAX_EXTENSION_BYTES) throw new Invalid('chunk');
      at = lineEnd + 2;
      if (size === 0) break;
      body += text.slice(at, at + size);
      at += size;
      if (isResponse && text[at] === '\n') {
        at++;
        continue;
      }
      if (!'\r\n'.startsWith(text.slice(at, at + 2))) throw new Invalid('the end of a chunk');
      if (at + 2 > text.length) throw new Incomplete();
      at += 2;
    }
    const { head, end } = isResponse ? modernHead(text, at, false) : { head: text.slice(at), end: 0 };
    const fields = readFields(head, 0, limits);
    const { lines } = fields;
    const behind = isResponse ? end : at + fields.end;
    if (behind - at > limits.maxHeadBytes) throw new Invalid('trailers that are too long');
    return { body, trailers: fieldsOf(lines), end: 'complete', behind };
  } catch (error) {
    if (error instanceof Invalid) return { body, trailers: [], end: 'invalid', behind: at };
    if (error instanceof Incomplete) return { body, trailers: [], end: 'missing', behind: at };
    throw error;
  }
}

/** Returns a head, or trailers, in the strict syntax, and the offset after it. */
function modernHead(text: string, from: number, hasStatusLine: boolean): { head: string; end: number } {
  const lines: string[] = [];
  let at = from;
  for (let line = '?'; line !== '' || (hasStatusLine && lines.length === 1); lines.push(line)) {
    const end = text.indexOf('\n', at);
    if (end < 0) throw new Incomplete();
    line = text.slice(at, end).replace(/\r$/, '');
    at = end + 1;
  }
  const raw = text.slice(from, at);
  const isStrict = !/(?<!\r)\n|\n[ \t]/.test(raw) && (!hasStatusLine || STATUS_LINE.test(lines[0]!));
  if (isStrict) return { head: raw, end: at };
  const modern: string[] = [];
  const first = hasStatusLine ? 1 : 0;
  for (const [index, line] of lines.entries()) {
    const trimmed = line.replace(/[ \t]+$/, '');
    if (index < first)
      modern.push(trimmed.replace(/^([^ \t]*)[ \t]+([^ \t]+)/, '$1 $2').replace(/^([^ \t]* [^ \t]+)[ \t]+/, '$1 '));
    else if (index > first && /^[ \t]/.test(line))
      modern.push(`${modern.pop()!} ${trimmed.replace(/^[ \t]+/, '')}`.replace(/ $/, ''));
    else modern.push(trimmed === '' ? line : trimmed);
  }
  return { head: modern.map((line) => `${line}\r\n`).join(''), end: at };
}

/** Replaces a length that is not in canonical form. */
function withPlainLength(fields: Fields, lines: Section['lines'], length: number | undefined): Fields {
  const raw = lines.find(([name]) => name === 'content-length')?.[2];
  if (raw === undefined || /^ (?:0|[1-9][0-9]*)$/.test(raw)) return fields;
  return [...fields.filter(([name]) => name !== 'content-length'), ['content-length', String(length)]];
}

function endsConnection(lines: Section['lines'], minor: number): boolean {
  const names = listOf(lines, 'connection');
  return names.includes('close') || (minor === 0 && !names.includes('keep-alive'));
}

function fieldsOf(lines: Section['lines']): Fields {
  return lines.map(([name, value]) => [name, value]);
}

function valuesOf(lines: Section['lines'], wanted: string): string[] {
  return lines.filter(([name]) => name === wanted).map(([, value]) => value);
}

function listOf(lines: Section['lines'], wanted: string): string[] {
  const members = valuesOf(lines, wanted).flatMap((value) => value.split(','));
  return members.map((member) => member.replace(/^[ \t]+|[ \t]+$/g, '').toLowerCase()).filter((name) => name !== '');
}

function endOfLine(text: string, at: number): number {
  const end = text.indexOf('\r\n', at);
  if (end < 0) throw new Incomplete();
  return end;
}

function matched(pattern: RegExp, text: string): RegExpExecArray {
  const found = pattern.exec(text);
  if (found === null) throw new Invalid(JSON.stringify(text));
  return found;
}
