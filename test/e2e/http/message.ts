// Parses HTTP/1 messages received on a raw connection.

export interface Message {
  /** Status of a response; 0 for a request. */
  status: number;
  startLine: string;
  /** Names in lower case; repeated fields are joined by commas. */
  headers: Record<string, string>;
  /** Everything after the header section. */
  rest: string;
}

/** Parses the first message of the text. Throws when its header section is incomplete. */
export function parseMessage(text: string): Message {
  const end = text.indexOf('\r\n\r\n');
  if (end < 0) throw new Error(`no complete head in ${JSON.stringify(text)}`);
  const [startLine = '', ...lines] = text.slice(0, end).split('\r\n');
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const colon = line.indexOf(':');
    const name = line.slice(0, colon).toLowerCase();
    const value = line.slice(colon + 1).trim();
    headers[name] = headers[name] === undefined ? value : `${headers[name]},${value}`;
  }
  const status = startLine.startsWith('HTTP/') ? Number(startLine.split(' ')[1]) : 0;
  return { status, startLine, headers, rest: text.slice(end + 4) };
}

/** A chunked body, as far as it was received. */
export interface ChunkedBody {
  body: string;
  /** Whether the last chunk and the end of the trailers were received. */
  isComplete: boolean;
  trailers: Record<string, string>;
  rest: string;
}

/** Decodes a chunked body, including a partial last chunk. Throws when the framing is invalid. */
export function dechunk(text: string): ChunkedBody {
  let body = '';
  for (;;) {
    const size = /^([0-9a-f]+)(;[^\r\n]*)?\r\n/i.exec(text);
    if (size === null) {
      if (/^[0-9a-f]*(;[^\r\n]*)?\r?$/i.test(text)) return { body, isComplete: false, trailers: {}, rest: text };
      throw new Error(`no chunk size at ${JSON.stringify(text.slice(0, 100))}`);
    }
    text = text.slice(size[0].length);
    const length = Number.parseInt(size[1]!, 16);
    if (length === 0) break;
    body += text.slice(0, length);
    const end = text.slice(length, length + 2);
    if (end !== '\r\n'.slice(0, end.length)) throw new Error(`a chunk does not end at ${JSON.stringify(end)}`);
    text = text.slice(length + 2);
  }
  if (text.startsWith('\r\n')) return { body, isComplete: true, trailers: {}, rest: text.slice(2) };
  if (!text.includes('\r\n\r\n')) return { body, isComplete: false, trailers: {}, rest: text };
  const { headers, rest } = parseMessage(`trailers\r\n${text}`);
  return { body, isComplete: true, trailers: headers, rest };
}
