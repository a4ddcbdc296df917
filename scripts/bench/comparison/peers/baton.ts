// Baton with one worker; statistics, x-request-id and x-forwarded-for are on, as by default.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  bootstrap,
  type Config,
  fileAccessLog,
  HTTP2_CLUSTER,
  httpListener,
  ROUTER_FILTER,
  routeAllTo,
  staticCluster,
  tcpListener,
} from '../../../../test/e2e/harness/bootstrap.js';
import { spawnPinned } from '../../processes.js';
import type { KeyPair } from '../certificates.js';
import type { Environment } from '../environment.js';
import { type ComparedFilter, HEADER_MUTATION, POLICIES, typeScriptFilter } from './filters.js';
import type { Peer, Ports } from './peer.js';

/** Returns a Baton that is started by this command and these arguments. */
export function baton([command, ...args]: string[]): Peer {
  return {
    name: 'baton',
    supports: () => true,
    start: (environment, ports) => {
      const { cores, directory } = environment;
      const configuration = join(directory, 'baton.json');
      const logFiles = [join(directory, 'baton-http.log'), join(directory, 'baton-tcp.log')];
      for (const file of logFiles) writeFileSync(file, '');
      writeFileSync(
        configuration,
        JSON.stringify(envoyConfiguration(environment, ports, logFiles, typeScriptFilter(directory))),
      );
      const all = [...args, '-c', configuration, '--concurrency', '1', '--disable-hot-restart', '-l', 'error'];
      return { child: spawnPinned(cores.proxy, command!, all), logFiles };
    },
  };
}

/** Returns the configuration that Baton and Envoy share. */
export function envoyConfiguration(
  environment: Environment,
  ports: Ports,
  [httpLog, tcpLog]: string[],
  script: ComparedFilter,
): Config {
  const { grpcPort, http2Port, secureUpstreamPort, tls, upstreamPort } = environment;
  // A long request timeout, like the peers': its timer is part of the work, but it must not fire.
  const manager = {
    use_remote_address: true,
    route_config: routeAllTo('origin', { timeout: '3600s' }),
    // openssl s_time speaks it.
    http_protocol_options: { accept_http_10: true },
  };
  const to = (cluster: string): Config => ({ route_config: routeAllTo(cluster, { timeout: '3600s' }) });
  const through = (filter: Config): Config => ({ ...manager, http_filters: [filter, ROUTER_FILTER] });
  const log = (path: string): Config => ({ access_log: [fileAccessLog(path)] });
  return bootstrap({
    listeners: [
      httpListener('http', ports.http, manager),
      httpListener('http_logged', ports.httpLogged, { ...manager, ...log(httpLog!) }),
      tcpListener('tcp', ports.tcp, { cluster: 'origin' }),
      tcpListener('tcp_logged', ports.tcpLogged, { cluster: 'origin', ...log(tcpLog!) }),
      secureListener('https', ports.https, manager, tls.ecdsa),
      secureListener('https_ecdsa_once', ports.httpsEcdsaOnce, manager, tls.ecdsa, [], NO_RESUMPTION),
      secureListener('https_rsa_once', ports.httpsRsaOnce, manager, tls.rsa, [], NO_RESUMPTION),
      secureListener('reencrypted', ports.reencrypted, { ...manager, ...to('secure_origin') }, tls.ecdsa),
      httpListener('h2c', ports.h2c, { ...manager, codec_type: 'HTTP2' }),
      secureListener('h2', ports.h2, { ...manager, codec_type: 'HTTP2' }, tls.ecdsa, ['h2']),
      httpListener('h2_to_h2', ports.h2ToH2, { ...manager, ...to('http2_origin'), codec_type: 'HTTP2' }),
      httpListener('grpc', ports.grpc, { ...manager, ...to('grpc_origin'), codec_type: 'HTTP2' }),
      httpListener('script', ports.script, through(script.filter)),
      httpListener('mutation', ports.mutation, through(HEADER_MUTATION)),
      httpListener('traced', ports.traced, { ...manager, tracing: TRACING }),
      httpListener('lua', ports.lua, through(POLICIES.lua)),
      httpListener('rbac', ports.rbac, through(POLICIES.rbac)),
      httpListener('jwt', ports.jwt, through(POLICIES.jwt)),
      httpListener('ext_authz', ports.extAuthz, through(POLICIES.extAuthz)),
      httpListener('rate_limit', ports.rateLimit, {
        ...through(POLICIES.rateLimit),
        route_config: routeAllTo('origin', { timeout: '3600s', rate_limits: [{ actions: [{ remote_address: {} }] }] }),
      }),
      httpListener('local_rate_limit', ports.localRateLimit, through(POLICIES.localRateLimit)),
      httpListener('gzip', ports.gzip, through(POLICIES.gzip)),
      httpListener('subset', ports.subset, {
        ...manager,
        route_config: routeAllTo('parted_origin', { timeout: '3600s', metadata_match: SUBSET }),
      }),
    ],
    clusters: [
      staticCluster('origin', upstreamPort),
      staticCluster('secure_origin', secureUpstreamPort, { transport_socket: CLIENT_TLS }),
      staticCluster('http2_origin', http2Port, HTTP2_CLUSTER),
      staticCluster('grpc_origin', grpcPort, HTTP2_CLUSTER),
      partedCluster(upstreamPort),
    ],
    extra: script.bootstrap,
  });
}

const SUBSET = { filter_metadata: { 'envoy.lb': { stage: 'prod' } } };

/** One host of two is in the subset. */
function partedCluster(port: number): Config {
  const lb_subset_config = { subset_selectors: [{ keys: ['stage'] }] };
  const cluster = staticCluster('parted_origin', [port, 1], { lb_subset_config });
  const [locality] = (cluster['load_assignment'] as { endpoints: { lb_endpoints: Config[] }[] }).endpoints;
  locality!.lb_endpoints[0]!['metadata'] = SUBSET;
  return cluster;
}

const NO_RESUMPTION = { disable_stateless_session_resumption: true, disable_stateful_session_resumption: true };

/** All requests are sampled. */
const TRACING = {
  provider: {
    name: 'otel',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.config.trace.v3.OpenTelemetryConfig',
      grpc_service: { envoy_grpc: { cluster_name: 'grpc_origin' } },
      service_name: 'bench',
    },
  },
};

const TLS = 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3';
const CLIENT_TLS = {
  name: 'tls',
  typed_config: {
    '@type': `${TLS}.UpstreamTlsContext`,
    common_tls_context: { tls_params: { tls_maximum_protocol_version: 'TLSv1_3' } },
  },
};

function secureListener(
  name: string,
  port: number,
  manager: Config,
  { certificate, key }: KeyPair,
  alpn_protocols: readonly string[] = [],
  more: Config = {},
): Config {
  const listener = httpListener(name, port, manager);
  const [chain] = listener['filter_chains'] as Config[];
  const tls_certificates = [{ certificate_chain: { filename: certificate }, private_key: { filename: key } }];
  const typed_config = {
    '@type': `${TLS}.DownstreamTlsContext`,
    common_tls_context: { tls_certificates, alpn_protocols },
    ...more,
  };
  return { ...listener, filter_chains: [{ ...chain, transport_socket: { name: 'tls', typed_config } }] };
}
