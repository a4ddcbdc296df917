// Mutated bodies of gRPC responses: the framing of messages, the answers of authorization services, rate limit services and
// external processors, and the specifiers of health discovery services. They run in this process.

import type { Random } from '../../src/common/random.js';
import { encodeJson, loadMessages } from '../../src/config/schema/messages.js';
import { decodeLimitAnswer } from '../../src/extensions/filters/common/rate-limit/limit-answer.js';
import {
  Decision,
  decodeAnswer,
  type HeaderChange,
} from '../../src/extensions/filters/http/ext-authz/check-response.js';
import { framed, MessageReader } from '../../src/grpc/message-reader.js';
import { mutateBytes } from './mutation.js';
import { isProcessorAnswer, processorAnswers } from './processor.js';
import { Finding, type Scope } from './scope.js';
import { isSpecifier, specifiers } from './specifier.js';

/** Inputs between two looks at the clock. */
const INPUTS_PER_STEP = 500;
const MAX_MESSAGE_BYTES = 64 * 1024;
const ANSWER = 'envoy.service.auth.v3.CheckResponse';
const LIMIT_ANSWER = 'envoy.service.ratelimit.v3.RateLimitResponse';

/** Throws a Finding when messages depend on how bytes are split, or an answer has an invalid header. Returns a summary. */
export async function fuzzGrpc(_scope: Scope, random: Random, durationMs: number): Promise<string> {
  const seeds = bodies();
  const end = performance.now() + durationMs;
  let inputs = 0;
  let messages = 0;
  let answers = 0;
  let limits = 0;
  let processed = 0;
  let checks = 0;
  while (performance.now() < end) {
    for (let left = INPUTS_PER_STEP; left > 0; left--, inputs++) {
      const input = mutateBytes(random, seeds, TOKENS);
      const found = readAll([input]);
      const inSegments = readAll(segments(random, input));
      if (found.join() !== inSegments.join())
        throw new Finding(`the messages of ${input.toString('hex')} are others when it arrives in segments`);
      for (const message of found) {
        messages++;
        const bytes = Buffer.from(message, 'hex');
        if (isAnswer(bytes)) answers++;
        if (isLimitAnswer(bytes)) limits++;
        if (isProcessorAnswer(bytes)) processed++;
        if (isSpecifier(bytes)) checks++;
      }
    }
    await new Promise(setImmediate);
  }
  return `${inputs} inputs (${messages} messages, ${answers} answers, ${limits} about limits, ${processed} of processors, ${checks} specifiers); no defect`;
}

/** Returns the messages in hexadecimal; the status of a call that has ended is the last one. */
function readAll(parts: readonly Buffer[]): string[] {
  const reader = new MessageReader(MAX_MESSAGE_BYTES);
  const found: string[] = [];
  for (const part of parts) {
    reader.push(part);
    for (let next = reader.next(); next !== undefined; next = reader.next()) {
      if (!Buffer.isBuffer(next)) return found;
      found.push(next.toString('hex'));
    }
  }
  return found;
}

function segments(random: Random, input: Buffer): Buffer[] {
  const parts: Buffer[] = [];
  for (let at = 0; at < input.length; ) {
    const length = 1 + random.below(7);
    parts.push(input.subarray(at, at + length));
    at += length;
  }
  return parts;
}

/** Returns whether a message is an answer that the filter applies. */
function isAnswer(message: Buffer): boolean {
  let answer: ReturnType<typeof decodeAnswer>;
  try {
    answer = decodeAnswer(message);
  } catch {
    return false;
  }
  checkFields(changesIn(answer), message);
  return true;
}

function isLimitAnswer(message: Buffer): boolean {
  let answer: ReturnType<typeof decodeLimitAnswer>;
  try {
    answer = decodeLimitAnswer(message);
  } catch {
    return false;
  }
  checkFields([...answer.toClient, ...answer.toHost], message);
  for (const { limit, remaining, resetSeconds } of answer.statuses)
    if (![remaining, resetSeconds, limit?.requests ?? 0, limit?.seconds ?? 0].every(Number.isFinite))
      throw new Finding(`the answer ${message.toString('hex')} has a limit that is not a number`);
  return true;
}

function checkFields(fields: readonly Pick<HeaderChange, 'key' | 'value'>[], message: Buffer): void {
  for (const { key, value } of fields)
    if (/[\0\r\n]/.test(value) || !/^[\w!#$%&'*+.^`|~-]+$/.test(key.name))
      throw new Finding(`the answer ${message.toString('hex')} has an invalid header`);
}

function changesIn(answer: ReturnType<typeof decodeAnswer>): readonly HeaderChange[] {
  switch (answer.decision) {
    case Decision.Allowed:
      return [...answer.toHost, ...answer.toClient];
    case Decision.Invalid:
      return [];
    default:
      return answer.headers;
  }
}

function bodies(): Buffer[] {
  const type = loadMessages(ANSWER)[ANSWER];
  const headers = [{ header: { key: 'x-a', value: 'b' } }, { header: { key: 'x-c', value: 'd' }, append: true }];
  const answers = [
    {},
    { status: { code: 7 }, denied_response: { status: { code: 'Forbidden' }, headers, body: 'no' } },
    {
      status: { code: 0 },
      ok_response: {
        headers,
        headers_to_remove: ['x-d'],
        response_headers_to_add: headers,
        query_parameters_to_set: [{ key: 'a', value: 'b' }],
      },
      dynamic_metadata: { a: [1, { b: null }] },
    },
  ].map((answer) => Buffer.from(framed(encodeJson(type, answer))));
  return [
    ...answers,
    ...limitAnswers(),
    ...processorAnswers(),
    ...specifiers(),
    Buffer.concat(answers),
    Buffer.alloc(0),
  ];
}

function limitAnswers(): Buffer[] {
  const type = loadMessages(LIMIT_ANSWER)[LIMIT_ANSWER];
  const fields = [{ key: 'x-a', value: 'b' }];
  const current_limit = { name: 'a', requests_per_unit: 5, unit: 'SECOND', unit_multiplier: 3 };
  return [
    {
      overall_code: 'OK',
      response_headers_to_add: fields,
      request_headers_to_add: fields,
      dynamic_metadata: { a: [1] },
    },
    {
      overall_code: 'OVER_LIMIT',
      statuses: [{ code: 'OVER_LIMIT', current_limit, limit_remaining: 1, duration_until_reset: '2.9s' }, {}],
      raw_body: 'bm8=',
    },
  ].map((answer) => Buffer.from(framed(encodeJson(type, answer))));
}

const TOKENS = ['00', '01', '0000000000', '00ffffffff', '0000010000', '0a', '0d0a', 'ff'].map((hex) =>
  Buffer.from(hex, 'hex'),
);
