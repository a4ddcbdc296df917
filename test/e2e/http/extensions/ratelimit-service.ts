// A rate limit service for tests. It answers as the value of the entry `answer` of the first descriptor says.

import { createServer, type IncomingHttpHeaders, type ServerHttp2Session } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { encodeJson, loadMessages } from '../../../../src/config/schema/messages.js';
import { framed, MessageReader } from '../../../../src/grpc/message-reader.js';
import type { Teardown } from '../../harness/index.js';

const QUESTION = 'envoy.service.ratelimit.v3.RateLimitRequest';
const ANSWER = 'envoy.service.ratelimit.v3.RateLimitResponse';
const types = loadMessages(QUESTION, ANSWER);

export interface Question {
  readonly domain: string;
  readonly descriptors: readonly {
    readonly entries?: readonly { readonly key: string; readonly value?: string }[];
    readonly limit?: { readonly requests_per_unit: number; readonly unit: string };
    readonly hits_addend?: { readonly value?: number };
    readonly is_negative_hits?: boolean;
  }[];
  readonly hits_addend?: number;
}

export interface RateLimitService {
  readonly port: number;
  readonly questions: Question[];
  /** The metadata of each call. */
  readonly metadata: IncomingHttpHeaders[];
}

/** Starts a service. `failing`: the call fails; `silent`: it has no end; `garbled`: the message cannot be decoded. Other requests are allowed. */
export async function startRateLimitService(
  t: Teardown,
  answers: Readonly<Record<string, object>>,
  /** Answers wait for it. */
  gate: Promise<void> = Promise.resolve(),
): Promise<RateLimitService> {
  const questions: Question[] = [];
  const metadata: IncomingHttpHeaders[] = [];
  const sessions = new Set<ServerHttp2Session>();
  const server = createServer();
  server.on('session', (session) => sessions.add(session));
  server.on('stream', (stream, headers) => {
    metadata.push(headers);
    const reader = new MessageReader(2 ** 20);
    stream.on('error', () => {});
    stream.on('data', (bytes: Buffer) => reader.push(bytes));
    stream.on('end', async () => {
      await gate;
      const message = types[QUESTION].decode(reader.next() as Buffer);
      const question = types[QUESTION].toObject(message, { longs: Number, enums: String }) as Question;
      questions.push(question);
      const choice = question.descriptors[0]?.entries?.find(({ key }) => key === 'answer')?.value ?? '';
      if (choice === 'silent') return;
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': choice === 'failing' ? '13' : '0' }));
      if (choice === 'failing') return void stream.end();
      const garbled = framed(Buffer.from([0x0a, 0xff, 0xff]));
      const answer = encodeJson(types[ANSWER], answers[choice] ?? { overall_code: 'OK' });
      stream.end(choice === 'garbled' ? garbled : framed(answer));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    for (const session of sessions) session.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, questions, metadata };
}
