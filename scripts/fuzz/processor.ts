// Answers of external processors for the fuzzing of gRPC messages: what they may do to a head.

import { encodeJson, loadMessages } from '../../src/config/schema/messages.js';
import { MutationRules } from '../../src/extensions/filters/common/mutation-rules.js';
import { type Answer, decodeAnswer } from '../../src/extensions/filters/http/ext-proc/answer.js';
import { applyMutation } from '../../src/extensions/filters/http/ext-proc/head-changes.js';
import { framed } from '../../src/grpc/message-reader.js';
import { HeaderBlock, Method } from '../../src/http/headers/header-block.js';
import { Memory } from '../../src/io/memory.js';
import { Finding } from './scope.js';

const ANSWER = 'envoy.service.ext_proc.v3.ProcessingResponse';
const RULES = new MutationRules({ allow_all_routing: true, allow_envoy: true }, '');
const LAYOUT = { receiveBytes: 0, scratchBytes: 256 * 1024, arenaBytes: 64 * 1024 };
const memory = new Memory(LAYOUT);

/** Returns whether a message is an answer. Throws a Finding when it makes a head invalid. */
export function isProcessorAnswer(message: Buffer): boolean {
  let answer: Answer;
  try {
    answer = decodeAnswer(message);
  } catch {
    return false;
  }
  const mutations = [
    answer.request_headers?.response?.header_mutation,
    answer.response_body?.response?.header_mutation,
    answer.request_trailers?.header_mutation,
    answer.immediate_response?.headers,
  ];
  for (const mutation of mutations) {
    if (mutation === undefined) continue;
    for (const kind of ['request', 'response', 'trailers'] as const) {
      const head = newHead();
      applyMutation(head, mutation, {
        rules: RULES,
        kind,
        isReplacing: false,
        takesLength: true,
        onRejected: () => {},
      });
      check(head, message);
    }
  }
  return true;
}

function newHead(): HeaderBlock {
  memory.collect();
  const head = new HeaderBlock(memory);
  head.setMethod(Method.Get, 'GET');
  head.setPath('/');
  head.status = 200;
  return head;
}

function check(head: HeaderBlock, message: Buffer): void {
  const isValidLine = /^[\w!#$%&'*+.^`|~-]+ \/[^\0-\x20#\x7f]* [2-9]\d\d$/.test(
    `${head.methodText()} ${head.pathText()} ${head.status}`,
  );
  for (let index = 0; index < head.size; index++) {
    if (head.isRemoved(index)) continue;
    const isValid = /^[\w!#$%&'*+.^`|~-]+$/.test(head.name(index)) && !/[\0\r\n]/.test(head.value(index));
    if (!isValid) throw new Finding(`the answer ${message.toString('hex')} adds an invalid field`);
  }
  if (!isValidLine) throw new Finding(`the answer ${message.toString('hex')} makes the first line invalid`);
}

/** Returns answers to mutate, with their prefixes. */
export function processorAnswers(): Buffer[] {
  const type = loadMessages(ANSWER)[ANSWER];
  const header_mutation = {
    set_headers: [
      { header: { key: ':path', raw_value: 'L2E=' } },
      { header: { key: 'x-a', raw_value: 'Yg==' }, append: true },
    ],
    remove_headers: ['x-d', ':method'],
  };
  return [
    {
      request_headers: {
        response: { header_mutation, status: 'CONTINUE_AND_REPLACE', body_mutation: { body: 'bm8=' } },
      },
    },
    { response_body: { response: { header_mutation, body_mutation: { streamed_response: { body: 'bm8=' } } } } },
    { request_trailers: { header_mutation }, dynamic_metadata: { a: { b: 1 } } },
    { immediate_response: { status: { code: 'Forbidden' }, headers: header_mutation, body: 'bm8=', details: 'a b' } },
    { override_message_timeout: '1.5s', mode_override: { request_body_mode: 'BUFFERED' } },
  ].map((answer) => Buffer.from(framed(encodeJson(type, answer))));
}
