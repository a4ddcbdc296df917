// Why a response is what it is, as the bits of one number, with the texts that logs show.

export const enum ResponseFlag {
  None = 0,
  FailedLocalHealthCheck = 1 << 0,
  NoHealthyUpstream = 1 << 1,
  UpstreamRequestTimeout = 1 << 2,
  LocalReset = 1 << 3,
  UpstreamRemoteReset = 1 << 4,
  UpstreamConnectionFailure = 1 << 5,
  UpstreamConnectionTermination = 1 << 6,
  UpstreamOverflow = 1 << 7,
  NoRouteFound = 1 << 8,
  DelayInjected = 1 << 9,
  FaultInjected = 1 << 10,
  RateLimited = 1 << 11,
  UnauthorizedExternalService = 1 << 12,
  RateLimitServiceError = 1 << 13,
  DownstreamConnectionTermination = 1 << 14,
  UpstreamRetryLimitExceeded = 1 << 15,
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
}

/** Short and long text of each flag, by bit. Several are shown in this order. */
const FLAG_TEXTS: readonly (readonly [short: string, long: string])[] = [
  ['LH', 'FailedLocalHealthCheck'],
  ['UH', 'NoHealthyUpstream'],
  ['UT', 'UpstreamRequestTimeout'],
  ['LR', 'LocalReset'],
  ['UR', 'UpstreamRemoteReset'],
  ['UF', 'UpstreamConnectionFailure'],
  ['UC', 'UpstreamConnectionTermination'],
  ['UO', 'UpstreamOverflow'],
  ['NR', 'NoRouteFound'],
  ['DI', 'DelayInjected'],
  ['FI', 'FaultInjected'],
  ['RL', 'RateLimited'],
  ['UAEX', 'UnauthorizedExternalService'],
  ['RLSE', 'RateLimitServiceError'],
  ['DC', 'DownstreamConnectionTermination'],
  ['URX', 'UpstreamRetryLimitExceeded'],
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
];

/** The flags as `UF,URX`, or `-` when none is set. */
export function shortFlags(flags: number): string {
  return join(flags, 0);
}

/** The flags as `UpstreamConnectionFailure,UpstreamRetryLimitExceeded`, or `-`. */
export function longFlags(flags: number): string {
  return join(flags, 1);
}

function join(flags: number, form: 0 | 1): string {
  if (flags === 0) return '-';
  const texts = FLAG_TEXTS.filter((_texts, bit) => ((flags >>> bit) & 1) === 1);
  return texts.map((both) => both[form]).join(',');
}
