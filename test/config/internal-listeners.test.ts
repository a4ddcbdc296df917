// Internal listeners and addresses: what Envoy 1.40 refuses is refused, and so is what no internal listener can do.

import t from 'tap';
import { ExtensionCatalog } from '../../src/config/catalog/extension.js';
import { EXTENSIONS as ALL } from '../../src/extensions/index.js';
import { problemsOf } from './load-text.js';

type Config = Record<string, unknown>;

const EXTENSIONS = 'type.googleapis.com/envoy.extensions';
const TCP = `${EXTENSIONS}.filters.network.tcp_proxy.v3.TcpProxy`;
const INTERNAL_UPSTREAM = `${EXTENSIONS}.transport_sockets.internal_upstream.v3.InternalUpstreamTransport`;
const RAW = { name: 'raw', typed_config: { '@type': `${EXTENSIONS}.transport_sockets.raw_buffer.v3.RawBuffer` } };

interface Parts {
  listener?: Config;
  cluster?: Config;
  endpoint?: Config;
  address?: Config;
  extension?: Config;
  bootstrap?: Config;
}

/** Returns the problems of an internal listener and a cluster with its address, with these fields. */
function problems({ listener, cluster, endpoint, address, extension, bootstrap }: Parts): string {
  const typed_config = { '@type': TCP, stat_prefix: 't', cluster: 'c' };
  const envoy_internal_address = { server_listener_name: 'inner', ...address };
  const extended = { '@type': `${EXTENSIONS}.bootstrap.internal_listener.v3.InternalListener`, ...extension };
  const configuration = {
    bootstrap_extensions: [{ name: 'internal', typed_config: extended }],
    static_resources: {
      listeners: [
        {
          name: 'inner',
          internal_listener: {},
          filter_chains: [{ filters: [{ name: 't', typed_config }] }],
          ...listener,
        },
      ],
      clusters: [
        {
          name: 'c',
          load_assignment: {
            cluster_name: 'c',
            endpoints: [{ lb_endpoints: [{ endpoint: { address: { envoy_internal_address }, ...endpoint } }] }],
          },
          ...cluster,
        },
      ],
    },
    ...bootstrap,
  };
  return problemsOf(JSON.stringify(configuration), { catalog: new ExtensionCatalog(ALL) });
}

function passing(source: Config, inner: Config = RAW): Config {
  const typed_config = { '@type': INTERNAL_UPSTREAM, passthrough_metadata: [source], transport_socket: inner };
  return { transport_socket: { name: 'internal', typed_config } };
}

const SOCKET = { socket_address: { address: '127.0.0.1', port_value: 1 } };
const CHECKS = [{ timeout: '1s', interval: '1s', unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {} }];
const HOST = { name: 'a', kind: { host: {} } };

const ACCEPTED: Record<string, Parts> = {
  'nothing else': {},
  'an endpoint ID': { address: { endpoint_id: 'a:1' } },
  'a listener with use_original_dst': { listener: { use_original_dst: true } },
  'a listener with bind_to_port': { listener: { bind_to_port: false } },
  'a listener with a stat prefix': { listener: { stat_prefix: 'p' } },
  'the largest buffer': { extension: { buffer_size_kb: 8192 } },
  'metadata of host and cluster': { cluster: passing(HOST) },
  'a source address, which is not used': {
    cluster: { upstream_bind_config: { source_address: { address: '127.0.0.1', port_value: 0 } } },
  },
  'health checks without this host': {
    cluster: { health_checks: CHECKS },
    endpoint: { health_check_config: { disable_active_health_check: true } },
  },
  'health checks of another address': {
    cluster: { health_checks: CHECKS },
    endpoint: { health_check_config: { address: SOCKET } },
  },
};

for (const [what, parts] of Object.entries(ACCEPTED)) {
  t.test(`accepted: ${what}`, async (t) => t.equal(problems(parts), ''));
}

const REFUSED: Record<string, [Parts, string]> = {
  'a listener with an address': [
    { listener: { address: SOCKET } },
    'listeners[0].address: address should not be used when an internal listener config is provided',
  ],
  'an internal address of a listener': [
    { listener: { internal_listener: undefined, address: { envoy_internal_address: { server_listener_name: 'x' } } } },
    'use internal_listener field instead of address for internal listeners',
  ],
  'no bootstrap extension': [
    { bootstrap: { bootstrap_extensions: [] } },
    'internal_listener: InternalListener bootstrap extension is mandatory',
  ],
  'a backlog': [{ listener: { tcp_backlog_size: 3 } }, 'tcp_backlog_size: unsupported tcp listener feature'],
  'a port that sockets share': [{ listener: { enable_reuse_port: true } }, 'enable_reuse_port: unsupported tcp'],
  freebind: [{ listener: { freebind: true } }, 'freebind: unsupported tcp listener feature'],
  transparent: [{ listener: { transparent: true } }, 'transparent: unsupported tcp listener feature'],
  'socket options': [
    { listener: { socket_options: [{ level: 1, name: 2, int_value: 3 }] } },
    'socket_options: an internal listener does not support socket options',
  ],
  'a buffer of 0 KiB': [{ extension: { buffer_size_kb: 0 } }, 'buffer_size_kb'],
  'a buffer that is too large': [{ extension: { buffer_size_kb: 8193 } }, 'buffer_size_kb'],
  'an address without a name': [{ address: { server_listener_name: undefined } }, 'server_listener_name must be set'],
  'an endpoint ID with a slash': [{ address: { endpoint_id: 'a/b' } }, "endpoint_id: '/' separates it"],
  'a name with a line end': [{ address: { server_listener_name: 'a\nb' } }, 'server_listener_name'],
  'an endpoint ID with a line end': [{ address: { endpoint_id: 'a\nb' } }, 'endpoint_id'],
  'health checks': [{ cluster: { health_checks: CHECKS } }, 'health checks cannot reach internal listeners'],
  'an internal address of health checks': [
    { endpoint: { health_check_config: { address: { envoy_internal_address: { server_listener_name: 'x' } } } } },
    'a health check needs a socket',
  ],
  'a port of health checks': [{ endpoint: { health_check_config: { port_value: 80 } } }, 'non-zero port for non-IP'],
  'a cluster that resolves names': [{ cluster: { type: 'STRICT_DNS' } }, 'a STRICT_DNS cluster resolves names'],
  'an internal address of the admin interface': [
    { bootstrap: { admin: { address: { envoy_internal_address: { server_listener_name: 'x' } } } } },
    'the admin interface needs a socket',
  ],
  'an internal address of a sink': [
    {
      bootstrap: {
        stats_sinks: [
          {
            name: 's',
            typed_config: {
              '@type': 'type.googleapis.com/envoy.config.metrics.v3.StatsdSink',
              address: { envoy_internal_address: { server_listener_name: 'x' } },
            },
          },
        ],
      },
    },
    'a sink needs a socket',
  ],
  'metadata of routes': [{ cluster: passing({ name: 'a', kind: { route: {} } }) }, 'metadata type is not supported'],
  'metadata of requests': [
    { cluster: passing({ name: 'a', kind: { request: {} } }) },
    'metadata type is not supported',
  ],
  'metadata without a name': [{ cluster: passing({ kind: { host: {} } }) }, 'passthrough_metadata[0].name'],
  'metadata without a kind': [{ cluster: passing({ name: 'a' }) }, 'passthrough_metadata[0].kind'],
  'a transport socket in itself': [
    { cluster: passing(HOST, passing(HOST)['transport_socket'] as Config) },
    'a connection brings one set of values',
  ],
};

for (const [what, [parts, expected]] of Object.entries(REFUSED)) {
  t.test(`refused: ${what}`, async (t) => t.match(problems(parts), expected));
}
