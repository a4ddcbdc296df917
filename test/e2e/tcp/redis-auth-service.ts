// A service of envoy.service.redis_auth.v3.RedisProxyExternalAuth, whose answers follow the passwords.

import { createServer, type ServerHttp2Session } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { encodeJson, loadMessages } from '../../../src/config/schema/messages.js';
import { framed, MessageReader } from '../../../src/grpc/message-reader.js';
import type { Teardown } from '../harness/index.js';

const QUESTION = 'envoy.service.redis_auth.v3.RedisProxyExternalAuthRequest';
const ANSWER = 'envoy.service.redis_auth.v3.RedisProxyExternalAuthResponse';
const types = loadMessages(QUESTION, ANSWER);

/** By password; for others, calls fail. */
const ANSWERS: Readonly<Record<string, object>> = {
  yes: { status: { code: 0 } },
  later: { status: { code: 0 }, expiration: '2100-01-01T00:00:00Z' },
  no: { status: { code: 16 }, message: 'not\r\nyou' },
  silent: { status: { code: 7 } },
  error: { status: { code: 13 }, message: 'broken' },
};

export interface AuthService {
  readonly port: number;
  /** User and password, with a space between them. */
  readonly questions: string[];
}

export async function startAuthService(t: Teardown): Promise<AuthService> {
  const questions: string[] = [];
  const server = createServer();
  const sessions = new Set<ServerHttp2Session>();
  server.on('session', (session) => sessions.add(session));
  server.on('stream', (stream) => {
    const reader = new MessageReader(2 ** 20);
    stream.on('error', () => {});
    stream.on('data', (bytes: Buffer) => reader.push(bytes));
    stream.on('end', () => {
      const { password = '', username = '' } = types[QUESTION].toObject(
        types[QUESTION].decode(reader.next() as Buffer),
      ) as Record<string, string>;
      questions.push(`${username} ${password}`);
      const answer = ANSWERS[password];
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': answer === undefined ? '13' : '0' }));
      stream.end(answer === undefined ? '' : framed(encodeJson(types[ANSWER], answer)));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    for (const session of sessions) session.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, questions };
}
