// Response flags: the reasons for a response, as bits of a number, and their texts in logs.

export const enum ResponseFlag {
  None = 0,
  UpstreamOverflow = 1 << 0,
  UpstreamRetryLimitExceeded = 1 << 1,
  FailedLocalHealthCheck = 1 << 2,
  NoHealthyUpstream = 1 << 3,
  UpstreamRequestTimeout = 1 << 4,
  LocalReset = 1 << 5,
  UpstreamRemoteReset = 1 << 6,
  UpstreamConnectionFailure = 1 << 7,
  UpstreamConnectionTermination = 1 << 8,
  NoRouteFound = 1 << 9,
  DelayInjected = 1 << 10,
  FaultInjected = 1 << 11,
  RateLimited = 1 << 12,
  UnauthorizedExternalService = 1 << 13,
  RateLimitServiceError = 1 << 14,
  DownstreamConnectionTermination = 1 << 15,
  StreamIdleTimeout = 1 << 16,
  InvalidEnvoyRequestHeaders = 1 << 17,
  DownstreamProtocolError = 1 << 18,
  UpstreamMaxStreamDurationReached = 1 << 19,
  ResponseFromCacheFilter = 1 << 20,
  NoFilterConfigFound = 1 << 21,
  DurationTimeout = 1 << 22,
  UpstreamProtocolError = 1 << 23,
  NoClusterFound = 1 << 24,
  OverloadManager = 1 << 25,
  DnsResolutionFailed = 1 << 26,
  DropOverload = 1 << 27,
  DownstreamRemoteReset = 1 << 28,
  UnconditionalDropOverload = 1 << 29,
  /** TCP: the last connect attempt has failed. */
  ConnectAttemptsExceeded = 1 << 30,
}

/**
 * Short and long text of each flag, by bit. Flags are shown in this order, which is that in which Envoy sets them: the exhausted
 * retry limit is detected before the flags of the final response.
 */
const FLAG_TEXTS: readonly (readonly [short: string, long: string])[] = [
  ['UO', 'UpstreamOverflow'],
  ['URX', 'UpstreamRetryLimitExceeded'],
  ['LH', 'FailedLocalHealthCheck'],
  ['UH', 'NoHealthyUpstream'],
  ['UT', 'UpstreamRequestTimeout'],
  ['LR', 'LocalReset'],
  ['UR', 'UpstreamRemoteReset'],
  ['UF', 'UpstreamConnectionFailure'],
  ['UC', 'UpstreamConnectionTermination'],
  ['NR', 'NoRouteFound'],
  ['DI', 'DelayInjected'],
  ['FI', 'FaultInjected'],
  ['RL', 'RateLimited'],
  ['UAEX', 'UnauthorizedExternalService'],
  ['RLSE', 'RateLimitServiceError'],
  ['DC', 'DownstreamConnectionTermination'],
  ['SI', 'StreamIdleTimeout'],
  ['IH', 'InvalidEnvoyRequestHeaders'],
  ['DPE', 'DownstreamProtocolError'],
  ['UMSDR', 'UpstreamMaxStreamDurationReached'],
  ['RFCF', 'ResponseFromCacheFilter'],
  ['NFCF', 'NoFilterConfigFound'],
  ['DT', 'DurationTimeout'],
  ['UPE', 'UpstreamProtocolError'],
  ['NC', 'NoClusterFound'],
  ['OM', 'OverloadManagerTerminated'],
  ['DF', 'DnsResolutionFailed'],
  ['DO', 'DropOverload'],
  ['DR', 'DownstreamRemoteReset'],
  ['UDO', 'UnconditionalDropOverload'],
  ['URX', 'UpstreamRetryLimitExceeded'],
];

/** Returns the flags as `URX,UF`, or `-` if none is set. */
export function shortFlags(flags: number): string {
  return join(flags, 0);
}

/** Returns the flags as `UpstreamRetryLimitExceeded,UpstreamConnectionFailure`, or `-`. */
export function longFlags(flags: number): string {
  return join(flags, 1);
}

/** Returns the bits of a short text; 0: there is no such flag. */
export function flagsOf(short: string): number {
  return FLAG_TEXTS.reduce((flags, [text], bit) => (text === short ? flags | (1 << bit) : flags), 0);
}

function join(flags: number, form: 0 | 1): string {
  if (flags === 0) return '-';
  const texts = FLAG_TEXTS.filter((_texts, bit) => ((flags >>> bit) & 1) === 1);
  return texts.map((both) => both[form]).join(',');
}
