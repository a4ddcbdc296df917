// The gRPC-JSON transcoder: mutated descriptor sets, path templates, requests and gRPC messages. Whatever they are, the result is a message,
// JSON, or one of the errors that the filter answers with, and within a second.

import { readFileSync } from 'node:fs';
import { BatonError } from '../../src/common/errors/errors.js';
import type { Random } from '../../src/common/random.js';
import { printMessage } from '../../src/extensions/filters/http/grpc-json-transcoder/message-printer.js';
import { parsePathTemplate } from '../../src/extensions/filters/http/grpc-json-transcoder/path-template.js';
import { findCall } from '../../src/extensions/filters/http/grpc-json-transcoder/request-call.js';
import { RequestTranslator } from '../../src/extensions/filters/http/grpc-json-transcoder/request-translator.js';
import {
  compileRules,
  type TranscoderRules,
} from '../../src/extensions/filters/http/grpc-json-transcoder/transcoder-rules.js';
import { WireError } from '../../src/extensions/protobuf/wire-reader.js';
import { mutateBytes, pick } from './mutation.js';
import { Finding, type Scope } from './scope.js';

const FOLDER = 'test/e2e/http/extensions/transcoder';
const MAX_MS = 1000;
const MAX_BYTES = 1024 * 1024;
const TOKENS: readonly Buffer[] = [
  ...['{', '}', '[', ']', '"', "'", ':', ',', '\\u', '\\ud800', '1e400', '-', '.', 'null', '@type', '"value":', '\xff'],
  ...['/', '*', '**', '{a=', '?', '&', '=', '%', '%2F', '.inner', '\x0a\xff\xff\xff\xff\x0f', '\x0b', '\x0c', '\x80'],
  ...['[[[[[[[[', '{"inner":{"inner":{"inner":', '\x8a\x01\x02\x12\x00'],
].map((text) => Buffer.from(text, 'latin1'));

interface Recorded {
  readonly method: string;
  readonly path: string;
  readonly body?: string;
  readonly sent?: string;
}

/** Throws a Finding when the transcoder shows a defect. Returns a summary. */
export async function fuzzTranscoder(_scope: Scope, random: Random, durationMs: number): Promise<string> {
  const library = readFileSync(`${FOLDER}/library.pb`);
  const lines = readFileSync(`${FOLDER}/requests.jsonl`, 'utf8').trim().split('\n');
  const requests = lines.map((line) => JSON.parse(line) as Recorded);
  const bodies = requests.flatMap(({ body }) => (body === undefined ? [] : [Buffer.from(body, 'latin1')]));
  const messages = requests.flatMap(({ sent }) => (sent === undefined ? [] : [Buffer.from(sent, 'hex')]));
  const paths = requests.map(({ path }) => Buffer.from(path, 'latin1'));
  const rules = rulesOf(library)!;
  const type = rules.registry.messages.get('test.library.Everything')!;
  const end = performance.now() + durationMs;
  let count = 0;
  for (; performance.now() < end; count++) {
    const body = mutateBytes(random, bodies, TOKENS);
    const path = `/${mutateBytes(random, paths, TOKENS)
      .toString('latin1')
      .replace(/[\0-\x20#]/g, '')}`;
    const message = mutateBytes(random, messages, TOKENS);
    const { method } = pick(random, requests);
    check('path template', path, () => parsePathTemplate(path));
    check('request', `${method} ${path}\n${body.toString('latin1')}`, () =>
      translate(rules, method, path, body, random),
    );
    check('message', message.toString('hex'), () => printMessage(type, message, rules.print, rules.registry.messages));
    if (count % 20 === 0) {
      const set = mutateBytes(random, [library], TOKENS);
      check('descriptor set', set.toString('base64'), () => rulesOf(set));
    }
  }
  return `${count} rounds`;
}

function rulesOf(descriptors: Buffer): TranscoderRules | undefined {
  return compileRules({
    proto_descriptor_bin: descriptors.toString('base64'),
    services: ['test.library.Library'],
    auto_mapping: true,
  });
}

function translate(rules: TranscoderRules, method: string, path: string, body: Buffer, random: Random): void {
  const call = findCall(rules, method, path);
  if ('isRefused' in call) return;
  const request = new RequestTranslator(rules, call, 'a/b', MAX_BYTES);
  if (!request.isStreaming) {
    const message = request.whole(body);
    if ('error' in message) return;
    return void printMessage(call.bound.method.input, message.subarray(5), rules.print, rules.registry.messages);
  }
  const cut = random.below(body.length + 1);
  if (!('error' in request.push(body.subarray(0, cut), false))) request.push(body.subarray(cut), true);
}

function check(what: string, input: string, act: () => unknown): void {
  const began = performance.now();
  try {
    act();
  } catch (error) {
    if (!(error instanceof WireError || error instanceof BatonError))
      throw new Finding(`${what}: ${(error as Error).stack}\n${input}`);
  }
  const took = performance.now() - began;
  if (took > MAX_MS) throw new Finding(`${what}: took ${Math.round(took)} ms\n${input.slice(0, 4000)}`);
}
