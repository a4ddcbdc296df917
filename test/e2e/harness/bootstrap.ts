// Bootstraps for tests and benchmarks, as plain objects in the shape of the YAML that a user writes.

/** Any part of a configuration. */
export type Config = Record<string, unknown>;

export interface BootstrapParts {
  listeners: Config[];
  clusters: Config[];
  /** Merged over the rest, for example `{ layered_runtime: … }`. */
  extra?: Config;
}

export const ROUTER_FILTER: Config = {
  name: 'envoy.filters.http.router',
  typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
};

/** Returns a bootstrap whose admin interface listens on a port that the kernel chooses. */
export function bootstrap({ listeners, clusters, extra = {} }: BootstrapParts): Config {
  return {
    admin: { address: loopback(0) },
    static_resources: { listeners, clusters },
    ...extra,
  };
}

/** Returns a TCP address on the loopback interface. */
export function loopback(port: number): Config {
  return { socket_address: { address: '127.0.0.1', port_value: port } };
}

/** Returns a listener whose only filter is an HttpConnectionManager; with port 0 the kernel chooses the port. */
export function httpListener(name: string, port: number, manager: Config): Config {
  return listener(name, port, {
    name: 'envoy.filters.network.http_connection_manager',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
      stat_prefix: name,
      http_filters: [ROUTER_FILTER],
      ...manager,
    },
  });
}

/** Returns a listener whose only filter is a TcpProxy. */
export function tcpListener(name: string, port: number, proxy: Config): Config {
  return listener(name, port, {
    name: 'envoy.filters.network.tcp_proxy',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy',
      stat_prefix: name,
      ...proxy,
    },
  });
}

/**
 * Returns a route_config that sends every request to one cluster, without a timeout: tests may hold responses for longer than
 * the default.
 */
export function routeAllTo(cluster: string, action: Config = {}): Config {
  const route = { cluster, timeout: '60s', ...action };
  return {
    name: 'all',
    virtual_hosts: [{ name: 'all', domains: ['*'], routes: [{ match: { prefix: '/' }, route }] }],
  };
}

/** Returns a STATIC cluster. `hosts`: ports on the loopback interface, or addresses. */
export function staticCluster(name: string, hosts: number | Config | (number | Config)[], more: Config = {}): Config {
  const addresses = [hosts].flat().map((host) => (typeof host === 'number' ? loopback(host) : host));
  return {
    name,
    type: 'STATIC',
    connect_timeout: '2s',
    load_assignment: {
      cluster_name: name,
      endpoints: [{ lb_endpoints: addresses.map((address) => ({ endpoint: { address } })) }],
    },
    ...more,
  };
}

/** Returns the HTTP protocol options of a cluster, for the parameter `more` of staticCluster(). */
export function clusterHttpOptions(options: Config): Config {
  const name = 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions';
  return { typed_extension_protocol_options: { [name]: { '@type': `type.googleapis.com/${name}`, ...options } } };
}

export const HTTP2_CLUSTER = clusterHttpOptions({ explicit_http_config: { http2_protocol_options: {} } });

/** For connection managers, and for the explicit_http_config of clusters. */
export const TRAILERS: Config = { http_protocol_options: { enable_trailers: true } };

export const TRAILERS_CLUSTER = clusterHttpOptions({ explicit_http_config: TRAILERS });

/** Returns a file access log, with the default format unless `format` (text) is given. */
export function fileAccessLog(path: string, format?: string): Config {
  return {
    name: 'envoy.access_loggers.file',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog',
      path,
      ...(format === undefined ? {} : { log_format: { text_format_source: { inline_string: format } } }),
    },
  };
}

/** Names of stats have the configured address, so listeners at port 0 need a prefix of their own. */
function listener(name: string, port: number, filter: Config): Config {
  const own = port === 0 ? { stat_prefix: name } : {};
  return { name, ...own, address: loopback(port), filter_chains: [{ filters: [filter] }] };
}
