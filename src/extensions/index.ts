// The list of all extensions of this build. A new extension is a folder and a line here; extensions without code are in named.ts.

import { fileAccessLog } from './access-loggers/file/index.js';
import { httpGrpcAccessLog, tcpGrpcAccessLog } from './access-loggers/grpc/index.js';
import { openTelemetryAccessLog } from './access-loggers/open-telemetry/index.js';
import { scriptAccessLog } from './access-loggers/script/index.js';
import { stderrAccessLog } from './access-loggers/stderr/index.js';
import { stdoutAccessLog } from './access-loggers/stdout/index.js';
import { internalListener } from './bootstrap/internal-listener/index.js';
import { scripts } from './bootstrap/scripts/index.js';
import { luaClusterSpecifier } from './cluster-specifiers/lua/index.js';
import { matcherClusterSpecifier } from './cluster-specifiers/matcher/index.js';
import { brotliCompressor, brotliDecompressor } from './compression/brotli.js';
import { gzipCompressor, gzipDecompressor } from './compression/gzip.js';
import { zstdCompressor, zstdDecompressor } from './compression/zstd.js';
import type { AnyExtension } from './factories.js';
import { adaptiveConcurrency } from './filters/http/adaptive-concurrency/index.js';
import { admissionControl } from './filters/http/admission-control/index.js';
import { apiKeyAuth } from './filters/http/api-key-auth/index.js';
import { bandwidthLimit } from './filters/http/bandwidth-limit/index.js';
import { basicAuth } from './filters/http/basic-auth/index.js';
import { buffer } from './filters/http/buffer/index.js';
import { cache } from './filters/http/cache/index.js';
import { composite } from './filters/http/composite/index.js';
import { compressor } from './filters/http/compressor/index.js';
import { connectGrpcBridge } from './filters/http/connect-grpc-bridge/index.js';
import { cors } from './filters/http/cors/index.js';
import { credentialInjector, injectedCredentials } from './filters/http/credential-injector/index.js';
import { csrf } from './filters/http/csrf/index.js';
import { customResponse } from './filters/http/custom-response/index.js';
import { decompressor } from './filters/http/decompressor/index.js';
import { dynamicForwardProxy } from './filters/http/dynamic-forward-proxy/index.js';
import { extAuthz } from './filters/http/ext-authz/index.js';
import { extProc } from './filters/http/ext-proc/index.js';
import { fault } from './filters/http/fault/index.js';
import { geoip, maxmindProvider } from './filters/http/geoip/index.js';
import { grpcHttp1Bridge } from './filters/http/grpc-http1-bridge/index.js';
import { grpcHttp1ReverseBridge } from './filters/http/grpc-http1-reverse-bridge/index.js';
import { grpcJsonTranscoder } from './filters/http/grpc-json-transcoder/index.js';
import { grpcStats } from './filters/http/grpc-stats/index.js';
import { grpcWeb } from './filters/http/grpc-web/index.js';
import { headerMutation } from './filters/http/header-mutation/index.js';
import { headerToMetadata } from './filters/http/header-to-metadata/index.js';
import { healthCheck } from './filters/http/health-check/index.js';
import { ipTagging } from './filters/http/ip-tagging/index.js';
import { jsonToMetadata } from './filters/http/json-to-metadata/index.js';
import { jwtAuthn } from './filters/http/jwt-authn/index.js';
import { localRateLimit } from './filters/http/local-ratelimit/index.js';
import { lua } from './filters/http/lua/index.js';
import { matchDelegate } from './filters/http/match-delegate/index.js';
import { oauth2 } from './filters/http/oauth2/index.js';
import { onDemand } from './filters/http/on-demand/index.js';
import { rateLimit } from './filters/http/ratelimit/index.js';
import { rbac } from './filters/http/rbac/index.js';
import { router } from './filters/http/router/index.js';
import { script } from './filters/http/script/index.js';
import { setFilterState } from './filters/http/set-filter-state/index.js';
import { setMetadata } from './filters/http/set-metadata/index.js';
import { sessionStates, statefulSession } from './filters/http/stateful-session/index.js';
import { tap } from './filters/http/tap/index.js';
import { wasm } from './filters/http/wasm/index.js';
import { httpInspector } from './filters/listener/http-inspector/index.js';
import { originalDst } from './filters/listener/original-dst/index.js';
import { proxyProtocol } from './filters/listener/proxy-protocol/index.js';
import { tlsInspector } from './filters/listener/tls-inspector/index.js';
import { connectionLimit } from './filters/network/connection-limit/index.js';
import { directResponse } from './filters/network/direct-response/index.js';
import { echo } from './filters/network/echo/index.js';
import { networkExtAuthz } from './filters/network/ext-authz/index.js';
import { httpConnectionManager } from './filters/network/http-connection-manager/index.js';
import { networkLocalRateLimit } from './filters/network/local-ratelimit/index.js';
import { networkRateLimit } from './filters/network/ratelimit/index.js';
import { networkRbac } from './filters/network/rbac/index.js';
import { redisProtocolOptions } from './filters/network/redis-proxy/cluster-options.js';
import { redisProxy } from './filters/network/redis-proxy/index.js';
import { networkScript } from './filters/network/script/index.js';
import { networkSetFilterState } from './filters/network/set-filter-state/index.js';
import { sniCluster } from './filters/network/sni-cluster/index.js';
import { sniDynamicForwardProxy } from './filters/network/sni-dynamic-forward-proxy/index.js';
import { tcpProxy } from './filters/network/tcp-proxy/index.js';
import { dnsFilter } from './filters/udp/dns-filter/index.js';
import { udpProxy } from './filters/udp/udp-proxy/index.js';
import { clusterProvided } from './load-balancing-policies/cluster-provided/index.js';
import { leastRequest } from './load-balancing-policies/least-request/index.js';
import { maglev } from './load-balancing-policies/maglev/index.js';
import { overrideHost } from './load-balancing-policies/override-host/index.js';
import { random } from './load-balancing-policies/random/index.js';
import { ringHash } from './load-balancing-policies/ring-hash/index.js';
import { roundRobin } from './load-balancing-policies/round-robin/index.js';
import { subset } from './load-balancing-policies/subset/index.js';
import { NAMED } from './named.js';
import { dogStatsdSink } from './stat-sinks/dog-statsd/index.js';
import { graphiteStatsdSink } from './stat-sinks/graphite-statsd/index.js';
import { hystrixSink } from './stat-sinks/hystrix/index.js';
import { metricsServiceSink } from './stat-sinks/metrics-service/index.js';
import { openTelemetrySink } from './stat-sinks/open-telemetry/index.js';
import { statsdSink } from './stat-sinks/statsd/index.js';
import { datadogTracer } from './tracers/datadog/index.js';
import { openTelemetryParts, openTelemetryTracer } from './tracers/open-telemetry/index.js';
import { skyWalkingTracer } from './tracers/skywalking/index.js';
import { zipkinTracer } from './tracers/zipkin/index.js';
import { http11Proxy } from './transport-sockets/http-11-proxy/index.js';
import { internalUpstream } from './transport-sockets/internal-upstream/index.js';
import { upstreamProxyProtocol } from './transport-sockets/proxy-protocol/index.js';
import { downstreamTls, upstreamTls } from './transport-sockets/tls/index.js';
import { spiffeValidator } from './transport-sockets/tls/spiffe.js';

export const EXTENSIONS: readonly AnyExtension[] = [
  fileAccessLog,
  httpGrpcAccessLog,
  tcpGrpcAccessLog,
  openTelemetryAccessLog,
  scriptAccessLog,
  stderrAccessLog,
  stdoutAccessLog,
  internalListener,
  scripts,
  luaClusterSpecifier,
  matcherClusterSpecifier,
  brotliCompressor,
  brotliDecompressor,
  gzipCompressor,
  gzipDecompressor,
  zstdCompressor,
  zstdDecompressor,
  apiKeyAuth,
  basicAuth,
  buffer,
  bandwidthLimit,
  adaptiveConcurrency,
  admissionControl,
  cache,
  composite,
  compressor,
  connectGrpcBridge,
  cors,
  credentialInjector,
  ...injectedCredentials,
  csrf,
  customResponse,
  decompressor,
  dynamicForwardProxy,
  extAuthz,
  extProc,
  fault,
  grpcHttp1Bridge,
  grpcHttp1ReverseBridge,
  grpcJsonTranscoder,
  grpcStats,
  grpcWeb,
  headerMutation,
  headerToMetadata,
  healthCheck,
  jsonToMetadata,
  ipTagging,
  jwtAuthn,
  localRateLimit,
  lua,
  matchDelegate,
  oauth2,
  onDemand,
  rateLimit,
  rbac,
  router,
  script,
  setFilterState,
  setMetadata,
  geoip,
  maxmindProvider,
  overrideHost,
  statefulSession,
  ...sessionStates,
  tap,
  wasm,
  httpInspector,
  originalDst,
  proxyProtocol,
  tlsInspector,
  httpConnectionManager,
  connectionLimit,
  directResponse,
  echo,
  networkExtAuthz,
  networkLocalRateLimit,
  networkRateLimit,
  networkRbac,
  networkScript,
  networkSetFilterState,
  redisProtocolOptions,
  redisProxy,
  sniCluster,
  sniDynamicForwardProxy,
  tcpProxy,
  clusterProvided,
  dnsFilter,
  udpProxy,
  leastRequest,
  maglev,
  random,
  ringHash,
  roundRobin,
  subset,
  dogStatsdSink,
  graphiteStatsdSink,
  hystrixSink,
  metricsServiceSink,
  openTelemetrySink,
  statsdSink,
  datadogTracer,
  openTelemetryTracer,
  ...openTelemetryParts,
  skyWalkingTracer,
  zipkinTracer,
  downstreamTls,
  spiffeValidator,
  upstreamTls,
  internalUpstream,
  upstreamProxyProtocol,
  http11Proxy,
  ...NAMED,
];
