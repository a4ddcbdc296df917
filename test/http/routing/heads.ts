// Header blocks for tests: written as text, read back as text.

import { headerIdOf } from '../../../src/common/text/header-names.js';
import { HeaderBlock, Method } from '../../../src/http/headers/header-block.js';
import { Memory } from '../../../src/io/memory.js';

/** Small, because a test may create thousands of header blocks. */
const LAYOUT = { receiveBytes: 0, scratchBytes: 128 * 1024, arenaBytes: 64 * 1024 };

const METHODS: Readonly<Record<string, Method>> = {
  GET: Method.Get,
  HEAD: Method.Head,
  POST: Method.Post,
  PUT: Method.Put,
  DELETE: Method.Delete,
  CONNECT: Method.Connect,
  OPTIONS: Method.Options,
};

/** Returns a request: `GET /a?b` and lines such as `Host: example.com`. */
export function requestHead(start: string, ...lines: string[]): HeaderBlock {
  const headers = new HeaderBlock(new Memory(LAYOUT));
  const [method = 'GET', path = '/'] = start.split(' ');
  headers.startLineStart = headers.writeText(`${method} ${path} HTTP/1.1\r\n`);
  headers.startLineEnd = headers.startLineStart + method.length + path.length + 12;
  headers.method = METHODS[method] ?? Method.Other;
  headers.methodStart = headers.startLineStart;
  headers.methodEnd = headers.methodStart + method.length;
  headers.pathStart = headers.methodEnd + 1;
  headers.pathEnd = headers.pathStart + path.length;
  addLines(headers, lines);
  return headers;
}

/** Returns a response. */
export function responseHead(status: number, ...lines: string[]): HeaderBlock {
  const headers = new HeaderBlock(new Memory(LAYOUT));
  headers.status = status;
  addLines(headers, lines);
  return headers;
}

/** Returns all fields as `name: value`, in order. */
export function linesOf(headers: HeaderBlock): string[] {
  const lines: string[] = [];
  for (let index = 0; index < headers.size; index++) {
    if (headers.isRemoved(index)) continue;
    const line = headers.memory.text(headers.nameStart(index), headers.lineEnd(index));
    if (
      line !== `${headers.memory.text(headers.nameStart(index), headers.nameEnd(index))}: ${headers.value(index)}\r\n`
    ) {
      throw new Error(`the ranges of '${line}' do not fit together`);
    }
    lines.push(line.slice(0, -2));
  }
  return lines;
}

/** Returns the values of one name. */
export function valuesOf(headers: HeaderBlock, name: string): string[] {
  return linesOf(headers)
    .filter((line) => line.toLowerCase().startsWith(`${name}: `))
    .map((line) => line.slice(name.length + 2));
}

function addLines(headers: HeaderBlock, lines: readonly string[]): void {
  for (const line of lines) {
    const start = headers.writeText(`${line}\r\n`);
    const nameEnd = start + line.indexOf(':');
    const end = start + line.length;
    const id = headerIdOf(headers.memory.bytes, headers.memory.view, start, nameEnd);
    headers.addField(id, start, nameEnd, Math.min(nameEnd + 2, end), end, end + 2);
  }
}
