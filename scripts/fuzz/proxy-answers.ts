// Mutated answers of HTTP proxies to CONNECT, and mutated names for the CONNECT of tunnels. They run in this process. An answer must have the
// same end whatever its pieces are, and only a complete 200 opens a tunnel; a name must not change the head of a request.

import { StreamInfo } from '../../src/access-log/stream/stream-info.js';
import type { Random } from '../../src/common/random.js';
import { TunnelRequest } from '../../src/extensions/filters/network/tcp-proxy/tunnel-request.js';
import { HeaderBlock } from '../../src/http/headers/header-block.js';
import { Memory } from '../../src/io/memory.js';
import { Answer, ConnectAnswer } from '../../src/upstream/connections/connect-proxy.js';
import { mutateBytes } from './mutation.js';
import { Finding, type Scope } from './scope.js';

/** Inputs between two looks at the clock. */
const INPUTS_PER_STEP = 500;
const MAX_INPUT_MS = 1000;
const LAYOUT = { receiveBytes: 0, scratchBytes: 1024 * 1024, arenaBytes: 1024 * 1024 };

const bytes = (...texts: string[]): Buffer[] => texts.map((text) => Buffer.from(text, 'latin1'));
const ANSWERS = bytes(
  'HTTP/1.1 200 OK\r\n\r\n',
  'HTTP/1.0 200 Connection established\r\nvia: a\r\n\r\nhello',
  'HTTP/1.1 407 Who\r\nproxy-authenticate: Basic\r\ncontent-length: 2\r\n\r\nno',
  'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n',
);
const NAMES = bytes('host.example:443', '[::1]:80', 'a', '-');
const TOKENS = bytes('\r\n', '\r\n\r\n', '\n', '\r', ' 200', '\0', ' ', ':', '/', '?', '#', '@', '\xff', 'HTTP/1.1');

/** Throws a Finding when an input causes an exception, or is not what it must be. Returns a summary. */
export async function fuzzProxyAnswers(_scope: Scope, random: Random, durationMs: number): Promise<string> {
  const memory = new Memory(LAYOUT);
  const end = performance.now() + durationMs;
  let inputs = 0;
  let accepted = 0;
  let names = 0;
  while (performance.now() < end) {
    for (let left = INPUTS_PER_STEP; left > 0; left--, inputs++) {
      const answer = mutateBytes(random, ANSWERS, TOKENS);
      if (attempt(answer, () => isAccepted(answer, random))) accepted++;
      const name = mutateBytes(random, NAMES, TOKENS);
      if (attempt(name, () => isName(name.toString('latin1'), memory, random))) names++;
      memory.endTurn();
    }
    await new Promise(setImmediate);
  }
  return `${inputs} inputs (${accepted} answers accepted, ${names} names); no defect`;
}

function attempt(input: Buffer, check: () => boolean): boolean {
  const begin = performance.now();
  try {
    const result = check();
    const ms = performance.now() - begin;
    if (ms > MAX_INPUT_MS) throw new Error(`it took ${Math.round(ms)} ms`);
    return result;
  } catch (error) {
    const text = error instanceof Error ? error.stack : String(error);
    throw new Finding(`${text}\n\nThe input:\n${JSON.stringify(input.toString('latin1', 0, 2000))}`);
  }
}

/** Returns whether the answer opens a tunnel. */
function isAccepted(input: Buffer, random: Random): boolean {
  const whole = new ConnectAnswer().receive(input);
  const pieces = new ConnectAnswer();
  let inPieces: number = Answer.Incomplete;
  for (let at = 0; at < input.length && inPieces === Answer.Incomplete; ) {
    const length = 1 + random.below(random.below(2) === 0 ? 3 : 2000);
    const taken = pieces.receive(input.subarray(at, at + length));
    inPieces = taken >= 0 ? at + taken : taken;
    at += length;
  }
  if (whole !== inPieces) throw new Error(`it ends at ${whole}, and in pieces at ${inPieces}`);
  if (whole < 0) return false;
  const head = input.toString('latin1', 0, whole);
  if (!/^HTTP\/1\.[01] 200[ \r]/.test(head) || !head.endsWith('\r\n\r\n')) throw new Error('it is not a complete 200');
  return true;
}

/** Returns whether a tunnel can have the name. */
function isName(name: string, memory: Memory, random: Random): boolean {
  const info = new StreamInfo();
  info.reset(0, 0);
  info.ownDynamicMetadata().set('a', { b: name });
  const request = new TunnelRequest({ hostname: '%DYNAMIC_METADATA(a:b)%' });
  const hostname = request.hostname(info);
  if (hostname === undefined) return false;
  const head = new HeaderBlock(memory);
  request.write(head, hostname, false, info, random);
  if (/[^!-~]/.test(head.pathText())) throw new Error('the target has other characters');
  return true;
}
