// Mutated commands and replies of the Redis protocol, and answers with the slots of a cluster. The readers run in this process, without sockets.

import type { Random } from '../../src/common/random.js';
import { ReplyReader } from '../../src/extensions/filters/network/redis-proxy/resp/reply-reader.js';
import { RequestReader } from '../../src/extensions/filters/network/redis-proxy/resp/request-reader.js';
import { RespError } from '../../src/extensions/filters/network/redis-proxy/resp/resp-scanner.js';
import { readSlots } from '../../src/server/clusters/redis/slots-reply.js';
import { mutateBytes } from './mutation.js';
import { Finding, type Scope } from './scope.js';

/** Inputs between two looks at the clock. */
const INPUTS_PER_STEP = 500;
const MAX_INPUT_MS = 2000;
const MAX_SHOWN_BYTES = 2000;

const SEEDS = [
  '*2\r\n$3\r\nGET\r\n$1\r\na\r\n*1\r\n$4\r\nPING\r\n',
  'SET a "b \\x41\\n" \'c\'\r\nPING\r\n',
  `*3\r\n$3\r\nSET\r\n$1\r\na\r\n$300\r\n${'x'.repeat(300)}\r\n`,
  '+OK\r\n-ERR x\r\n:-12\r\n$-1\r\n*-1\r\n*2\r\n*1\r\n:1\r\n$2\r\nab\r\n',
  '%1\r\n+a\r\n#t\r\n~1\r\n,1.5\r\n(12\r\n=5\r\ntxt:x\r\n_\r\n>1\r\n:1\r\n|1\r\n+a\r\n:1\r\n*1\r\n|1\r\n+a\r\n+b\r\n+c\r\n',
].map((text) => Buffer.from(text, 'latin1'));
const SLOTS = [
  '*2\r\n*3\r\n:0\r\n:99\r\n*3\r\n$1\r\na\r\n:1\r\n$2\r\nid\r\n*4\r\n:100\r\n:16383\r\n*2\r\n$1\r\nb\r\n:2\r\n*4\r\n$1\r\nc\r\n:3\r\n+x\r\n*0\r\n',
].map((text) => Buffer.from(text, 'latin1'));
const TOKENS = ['\r\n', '*', '$', '-1', '*1\r\n', '$0\r\n\r\n', '1048577', '536870912', '"', '\\x', '\r', '%'].map(
  (text) => Buffer.from(text, 'latin1'),
);

interface Reader {
  add(bytes: Uint8Array, offset: number, length: number): void;
  next(): Uint8Array | readonly Uint8Array[] | undefined;
  keep(): void;
  clear(): void;
}

/** Throws a Finding when a reader throws, takes long, keeps room, or reads otherwise when bytes arrive in segments. */
export async function fuzzResp(_scope: Scope, random: Random, durationMs: number): Promise<string> {
  const end = performance.now() + durationMs;
  let inputs = 0;
  let values = 0;
  while (performance.now() < end) {
    for (let left = INPUTS_PER_STEP; left > 0; left--, inputs++) {
      const input = mutateBytes(random, SEEDS, TOKENS);
      values += check(input, random, (room) => new RequestReader(room));
      values += check(input, random, (room) => new ReplyReader(room));
      values += checkSlots(mutateBytes(random, SLOTS, TOKENS));
    }
    await new Promise(setImmediate);
  }
  return `${inputs} inputs (${values} values); no defect`;
}

/** Returns the number of valid ranges. */
function checkSlots(input: Buffer): number {
  const begin = performance.now();
  let ranges = 0;
  try {
    ranges = readSlots(input).length;
  } catch (error) {
    if (!(error instanceof RespError)) throw new Finding(`${error}: ${shown(input)}`);
  }
  if (performance.now() - begin > MAX_INPUT_MS) throw new Finding(`slow: ${shown(input)}`);
  return ranges;
}

class Room {
  reserved = 0;
  reserve(bytes: number): boolean {
    this.reserved += bytes;
    return true;
  }
  release(bytes: number): void {
    this.reserved -= bytes;
  }
}

function check(input: Buffer, random: Random, make: (room: Room) => Reader): number {
  const begin = performance.now();
  const whole = read(input, input.length + 1, make);
  const pieces = read(input, 1 + random.below(9), make);
  if (whole.join('\n') !== pieces.join('\n')) throw new Finding(`other values in pieces: ${shown(input)}`);
  if (performance.now() - begin > MAX_INPUT_MS) throw new Finding(`slow: ${shown(input)}`);
  return whole.length;
}

/** Returns the values, as text; 'error' at the end if what follows is not of the protocol. */
function read(input: Buffer, size: number, make: (room: Room) => Reader): string[] {
  const room = new Room();
  const reader = make(room);
  const values: string[] = [];
  try {
    for (let at = 0; at < input.length; at += size) {
      const piece = Buffer.from(input.subarray(at, at + size));
      reader.add(piece, 0, piece.length);
      for (let value = reader.next(); value !== undefined; value = reader.next()) values.push(textOf(value));
      reader.keep();
      piece.fill(0xff);
    }
  } catch (error) {
    if (!(error instanceof RespError)) throw new Finding(`${String(error)}: ${shown(input)}`);
    values.push('error');
  }
  reader.clear();
  if (room.reserved !== 0) throw new Finding(`room is kept: ${shown(input)}`);
  return values;
}

function textOf(value: Uint8Array | readonly Uint8Array[]): string {
  const parts = value instanceof Uint8Array ? [value] : value;
  return JSON.stringify(parts.map((part) => Buffer.from(part).toString('latin1')));
}

function shown(input: Buffer): string {
  return JSON.stringify(input.subarray(0, MAX_SHOWN_BYTES).toString('latin1'));
}
