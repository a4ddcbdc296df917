// Names whose fields form one value, however many lines they take: those that Envoy 1.40 stores as one ("inline" headers).
// Fields of other names are separate values.

/** The kind of a head, one bit each. */
export const enum HeadKind {
  Request = 1,
  Response = 2,
  Trailers = 4,
}

const BOTH = [
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'cache-control',
  'keep-alive',
  'proxy-connection',
  'proxy-status',
  'transfer-encoding',
  'upgrade',
  'via',
  'x-envoy-attempt-count',
  'x-envoy-decorator-operation',
  'x-request-id',
];

const REQUEST = [
  'accept',
  'accept-encoding',
  'access-control-request-headers',
  'access-control-request-method',
  'access-control-request-private-network',
  'authentication',
  'authorization',
  'cdn-loop',
  'expect',
  'grpc-accept-encoding',
  'grpc-timeout',
  'host',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-range',
  'if-unmodified-since',
  'origin',
  'pragma',
  'referer',
  'te',
  'user-agent',
  'x-client-trace-id',
  'x-envoy-downstream-service-cluster',
  'x-envoy-downstream-service-node',
  'x-envoy-expected-rq-timeout-ms',
  'x-envoy-external-address',
  'x-envoy-force-trace',
  'x-envoy-hedge-on-per-try-timeout',
  'x-envoy-internal',
  'x-envoy-ip-tags',
  'x-envoy-is-timeout-retry',
  'x-envoy-max-retries',
  'x-envoy-original-host',
  'x-envoy-original-path',
  'x-envoy-original-url',
  'x-envoy-retriable-header-names',
  'x-envoy-retriable-status-codes',
  'x-envoy-retry-grpc-on',
  'x-envoy-retry-on',
  'x-envoy-upstream-alt-stat-name',
  'x-envoy-upstream-rq-per-try-timeout-ms',
  'x-envoy-upstream-rq-timeout-alt-response',
  'x-envoy-upstream-rq-timeout-ms',
  'x-envoy-upstream-stream-duration-ms',
  'x-forwarded-client-cert',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-proto',
];

const RESPONSE = [
  'access-control-allow-credentials',
  'access-control-allow-headers',
  'access-control-allow-methods',
  'access-control-allow-origin',
  'access-control-allow-private-network',
  'access-control-expose-headers',
  'access-control-max-age',
  'age',
  'date',
  'etag',
  'expires',
  'grpc-message',
  'grpc-status',
  'last-modified',
  'location',
  'server',
  'vary',
  'x-envoy-degraded',
  'x-envoy-immediate-health-check-fail',
  'x-envoy-ratelimited',
  'x-envoy-upstream-canary',
  'x-envoy-upstream-healthchecked-cluster',
  'x-envoy-upstream-service-time',
];

const TRAILERS = ['grpc-message', 'grpc-status'];

/** Returns the HeadKind bits of messages in which the fields of a name (lower case) form one value. */
export function joinedKinds(name: string): number {
  return KINDS.get(name) ?? 0;
}

const KINDS: ReadonlyMap<string, number> = kinds();

function kinds(): Map<string, number> {
  const kinds = new Map<string, number>();
  const add = (names: readonly string[], bits: number) => {
    for (const name of names) kinds.set(name, (kinds.get(name) ?? 0) | bits);
  };
  add(BOTH, HeadKind.Request | HeadKind.Response);
  add(REQUEST, HeadKind.Request);
  add(RESPONSE, HeadKind.Response);
  add(TRAILERS, HeadKind.Trailers);
  return kinds;
}
