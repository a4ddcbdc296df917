// Writes values of the protocol.

const CRLF = '\r\n';

export function errorReply(text: string): Buffer {
  return Buffer.from(`-${onOneLine(text)}${CRLF}`, 'latin1');
}

export function statusReply(text: string): Buffer {
  return Buffer.from(`+${text}${CRLF}`, 'latin1');
}

export function integerReply(number: number): Buffer {
  return Buffer.from(`:${number}${CRLF}`, 'latin1');
}

export function arrayHead(count: number): Buffer {
  return Buffer.from(`*${count}${CRLF}`, 'latin1');
}

/** A map of RESP3, with the elements as they are: a key, and its value. */
export function mapReply(elements: readonly Uint8Array[]): Buffer {
  return Buffer.concat([Buffer.from(`%${elements.length / 2}${CRLF}`, 'latin1'), ...elements]);
}

/** The null of RESP3. */
export const NULL_REPLY = Buffer.from(`_${CRLF}`, 'latin1');

export function arrayReply(elements: readonly Uint8Array[]): Buffer {
  return Buffer.concat([arrayHead(elements.length), ...elements]);
}

export function stringReply(bytes: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(`$${bytes.length}${CRLF}`, 'latin1'), bytes, Buffer.from(CRLF)]);
}

/** Returns a command with these words, as it is sent to a host. */
export function commandBytes(words: readonly Uint8Array[]): Buffer {
  let size = headSize(words.length);
  for (const word of words) size += headSize(word.length) + word.length + 2;
  const bytes = Buffer.allocUnsafe(size);
  let at = bytes.write(`*${words.length}${CRLF}`, 0, 'latin1');
  for (const word of words) {
    at += bytes.write(`$${word.length}${CRLF}`, at, 'latin1');
    bytes.set(word, at);
    at += word.length;
    bytes[at++] = 13;
    bytes[at++] = 10;
  }
  return bytes;
}

export function textCommand(...words: readonly string[]): Buffer {
  return commandBytes(words.map((word) => Buffer.from(word, 'latin1')));
}

function headSize(number: number): number {
  return 3 + (number < 10 ? 1 : number < 100 ? 2 : String(number).length);
}

/** What a client has sent may end no line of a reply. */
function onOneLine(text: string): string {
  return text.replaceAll(/[\r\n]/g, ' ');
}
