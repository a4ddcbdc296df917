// A rate limit service, as the filters of a worker call it.

import type { GrpcService, RateLimitServiceConfig } from '../../../../config/generated/api.js';
import { GrpcChannel } from '../../../grpc-sdk.js';
import {
  type CallingThread,
  checkGrpcService,
  durationMs,
  getLogger,
  messageOf,
  type RateLimitDescriptor,
  type Report,
  type RunningCall,
  type StreamInfo,
} from '../../../sdk.js';
import { decodeLimitAnswer, type LimitAnswer } from './limit-answer.js';
import { encodeQuestion } from './limit-request.js';

const METHOD = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';
/** As in Envoy, unless a timeout is set. */
const TIMEOUT_MS = 20;

const logger = getLogger('filter');

export interface Question {
  /** One character per byte. */
  readonly domain: string;
  readonly descriptors: readonly RateLimitDescriptor[];
  /** Hits of the whole request; 0 leaves the number to the service. */
  readonly hits: number;
}

export class LimitService {
  readonly #channel: GrpcChannel;
  readonly #timeoutMs: number;

  /** `timeout`: of the filter. As in Envoy, it applies instead of that of the service. */
  constructor({ grpc_service: service }: RateLimitServiceConfig, timeout: string | undefined, thread: CallingThread) {
    const { timeout: _timeout, ...untimed } = service!;
    this.#channel = new GrpcChannel(untimed, thread);
    this.#timeoutMs = durationMs(timeout, TIMEOUT_MS);
  }

  /**
   * Asks the service. Calls `onAnswer` once, perhaps before it returns, and never after cancel(); undefined: the service has failed.
   * Returns undefined if the call has ended already. `info`: for operators in the metadata.
   */
  ask(
    { descriptors, domain, hits }: Question,
    onAnswer: (answer: LimitAnswer | undefined) => void,
    info?: StreamInfo,
  ): RunningCall | undefined {
    const fail = (reason: string) => {
      if (logger.isDebug) logger.debug(`no answer of the rate limit service: ${reason}`);
      onAnswer(undefined);
    };
    return this.#channel.unary(
      METHOD,
      encodeQuestion(domain, descriptors, hits),
      this.#timeoutMs,
      {
        onAnswer(message) {
          let answer: LimitAnswer;
          try {
            answer = decodeLimitAnswer(message);
          } catch (error) {
            return fail(messageOf(error));
          }
          onAnswer(answer);
        },
        onFailure: ({ code, details }) => fail(`${code}, ${details}`),
      },
      info,
    );
  }

  /** Called when no question will follow. */
  close(): void {
    this.#channel.close();
  }
}

/** Reports mistakes of the service's configuration. `timeout`: of the filter. */
export function checkLimitService(
  config: RateLimitServiceConfig | undefined,
  timeout: string | undefined,
  report: Report,
): void {
  const service: GrpcService | undefined = config?.grpc_service;
  if (service === undefined) return;
  const where = 'rate_limit_service.grpc_service';
  checkGrpcService(service, where, report);
  if (service.google_grpc !== undefined)
    report(
      `${where}.google_grpc`,
      'workers call the hosts of clusters: define one with http2_protocol_options for target_uri, and name it in envoy_grpc',
    );
  if (timeout !== undefined && durationMs(timeout) === 0)
    report('timeout', 'must be above 0: without a timeout a request could wait forever');
}
