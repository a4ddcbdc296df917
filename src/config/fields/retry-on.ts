// The conditions of retry_on (envoy.config.route.v3.RetryPolicy, x-envoy-retry-on).

/** Conditions of retry_on, as bits. */
export const enum RetryOn {
  None = 0,
  ServerError = 1 << 0,
  GatewayError = 1 << 1,
  ConnectFailure = 1 << 2,
  Retriable4xx = 1 << 3,
  RefusedStream = 1 << 4,
  RetriableStatusCodes = 1 << 5,
  RetriableHeaders = 1 << 6,
  Reset = 1 << 7,
  ResetBeforeRequest = 1 << 8,
  EnvoyRateLimited = 1 << 9,
  GrpcCancelled = 1 << 10,
  GrpcDeadlineExceeded = 1 << 11,
  GrpcResourceExhausted = 1 << 12,
  GrpcUnavailable = 1 << 13,
  GrpcInternal = 1 << 14,
}

/** The conditions in a retry_on text, and its unknown words. */
export interface ParsedRetryOn {
  readonly conditions: number;
  readonly unknown: readonly string[];
}

/** Parses a comma-separated retry_on. */
export function parseRetryOn(text: string): ParsedRetryOn {
  let conditions: number = RetryOn.None;
  const unknown: string[] = [];
  for (const part of text.split(',')) {
    const word = part.trim();
    if (word === '') continue;
    const condition = CONDITIONS.get(word);
    if (condition !== undefined) conditions |= condition;
    else if (word !== HTTP3_WORD) unknown.push(word);
  }
  return { conditions, unknown };
}

/** All words of retry_on that have an effect. */
export function retryOnWords(): readonly string[] {
  return [...CONDITIONS.keys()];
}

const CONDITIONS: ReadonlyMap<string, RetryOn> = new Map<string, RetryOn>([
  ['5xx', RetryOn.ServerError],
  ['gateway-error', RetryOn.GatewayError],
  ['connect-failure', RetryOn.ConnectFailure],
  ['retriable-4xx', RetryOn.Retriable4xx],
  ['refused-stream', RetryOn.RefusedStream],
  ['retriable-status-codes', RetryOn.RetriableStatusCodes],
  ['retriable-headers', RetryOn.RetriableHeaders],
  ['reset', RetryOn.Reset],
  ['reset-before-request', RetryOn.ResetBeforeRequest],
  ['envoy-ratelimited', RetryOn.EnvoyRateLimited],
  ['cancelled', RetryOn.GrpcCancelled],
  ['deadline-exceeded', RetryOn.GrpcDeadlineExceeded],
  ['resource-exhausted', RetryOn.GrpcResourceExhausted],
  ['unavailable', RetryOn.GrpcUnavailable],
  ['internal', RetryOn.GrpcInternal],
]);

/** Retries of a request that HTTP/3 could not send after its handshake. Without HTTP/3 to hosts there is none. */
const HTTP3_WORD = 'http3-post-connect-failure';
