// Asks a gRPC service whether clients may use the proxy (envoy.service.redis_auth.v3.RedisProxyExternalAuth).

import type { RedisExternalAuthProvider } from '../../../../config/generated/api.js';
import { GrpcChannel, loadMessages } from '../../../grpc-sdk.js';
import { getLogger, messageOf, ProtobufWriter, type RunningCall, type WorkerContext } from '../../../sdk.js';
import { errorReply } from './resp/write.js';

const METHOD = '/envoy.service.redis_auth.v3.RedisProxyExternalAuth/Authenticate';
const RESPONSE = 'envoy.service.redis_auth.v3.RedisProxyExternalAuthResponse';
/** Unless the service has a timeout. */
const TIMEOUT_MS = 200;
const MAX_MESSAGE = 256;
const PERMISSION_DENIED = 7;
const UNAUTHENTICATED = 16;

const FAILED = errorReply('ERR external authentication failed');

const logger = getLogger('redis');

export interface AuthAnswer {
  /** Wall-clock milliseconds at which the permission ends; Infinity: it does not. Undefined: there is none. */
  readonly untilMs: number | undefined;
  /** For a client without permission. */
  readonly refusal: Buffer;
}

interface Answer {
  readonly status?: { readonly code?: number };
  readonly expiration?: { readonly seconds?: number | string };
  readonly message?: string;
}

export class ExternalAuth {
  readonly #channel: GrpcChannel;
  readonly #expires: boolean;

  constructor(config: RedisExternalAuthProvider, { calls }: WorkerContext) {
    this.#channel = new GrpcChannel(config.grpc_service!, calls);
    this.#expires = config.enable_auth_expiration ?? false;
  }

  /** Calls `done` once, perhaps before this returns, unless the call is cancelled. `code`: what a refusal begins with. */
  ask(username: Buffer, password: Buffer, code: string, done: (answer: AuthAnswer) => void): RunningCall | undefined {
    const question = new ProtobufWriter();
    if (username.length > 0) question.string(1, username.toString());
    if (password.length > 0) question.string(2, password.toString());
    const message = Buffer.alloc(question.length);
    question.putTo({ put: (bytes, from, to) => message.set(bytes.subarray(from, to)) });
    const failed = (reason: string) => {
      if (logger.isDebug) logger.debug(`no answer about a client: ${reason}`);
      done({ untilMs: undefined, refusal: FAILED });
    };
    return this.#channel.unary(METHOD, message, TIMEOUT_MS, {
      onAnswer: (bytes) => {
        let answer: Answer;
        try {
          answer = decode(bytes);
        } catch (error) {
          return failed(messageOf(error));
        }
        done(this.#read(answer, code));
      },
      onFailure: ({ code: status, details }) => failed(`${status}, ${details}`),
    });
  }

  close(): void {
    this.#channel.close();
  }

  #read({ expiration, message = '', status }: Answer, code: string): AuthAnswer {
    const result = status?.code ?? 0;
    if (result === 0) {
      const untilMs = this.#expires ? Number(expiration?.seconds ?? 0) * 1000 : Number.POSITIVE_INFINITY;
      return { untilMs, refusal: FAILED };
    }
    if (result !== PERMISSION_DENIED && result !== UNAUTHENTICATED) return { untilMs: undefined, refusal: FAILED };
    const text = Buffer.from(message.slice(0, MAX_MESSAGE) || 'unauthorized').toString('latin1');
    return { untilMs: undefined, refusal: errorReply(`${code} ${text}`) };
  }
}

let type: ReturnType<typeof loadMessages>[string] | undefined;

function decode(message: Uint8Array): Answer {
  type ??= loadMessages(RESPONSE)[RESPONSE];
  return type!.toObject(type!.decode(message), { longs: Number }) as Answer;
}
