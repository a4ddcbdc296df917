import t from 'tap';
import type { Cluster } from '../../src/config/generated/api.js';
import { EXTENSIONS } from '../../src/extensions/index.js';
import { ExtensionRegistry } from '../../src/extensions/registry.js';
import { addressText } from '../../src/io/addresses/address.js';
import { clusterSpec as specOf } from '../../src/upstream/cluster-config.js';
import { discoverySpec, staticEndpoint } from '../../src/upstream/discovery-config.js';
import { HealthFlag } from '../../src/upstream/hosts/health-flags.js';

const POLICIES = 'envoy.load_balancing_policies';
const policies = new ExtensionRegistry(EXTENSIONS);
const clusterSpec = (cluster: Cluster) => specOf(cluster, policies);

t.test("unset fields have Envoy's defaults", async (t) => {
  t.match(clusterSpec({ name: 'c' }), {
    name: 'c',
    observabilityName: 'c',
    hasLogicalHost: false,
    connectTimeoutMs: 5000,
    perConnectionBufferLimit: 1024 * 1024,
    maxRequestsPerConnection: 0,
    idleTimeoutMs: 3_600_000,
    maxConnectionDurationMs: 0,
    sourceAddress: undefined,
    keepalive: undefined,
    thresholds: [
      { maxConnections: 1024, maxPendingRequests: 1024, maxRequests: 1024, maxRetries: 3 },
      { maxConnections: 1024, maxPendingRequests: 1024, maxRequests: 1024, maxRetries: 3 },
    ],
    trackRemaining: [false, false],
    loadBalancer: { policy: `${POLICIES}.round_robin` },
    health: { panicThreshold: 50, failTrafficOnPanic: false },
  });
  t.match(discoverySpec({ name: 'c' }), {
    type: 'STATIC',
    endpoints: [],
    dns: { family: 'AUTO', refreshMs: 5000, respectTtl: false, failureRefresh: undefined },
  });
});

const FULL: Cluster = {
  name: 'c',
  alt_stat_name: 'other',
  type: 'STRICT_DNS',
  connect_timeout: '0.250s',
  per_connection_buffer_limit_bytes: 32768,
  max_requests_per_connection: 7,
  lb_policy: 'LEAST_REQUEST',
  least_request_lb_config: { choice_count: 5, active_request_bias: { runtime_key: 'x' } },
  common_lb_config: { healthy_panic_threshold: {} },
  circuit_breakers: {
    thresholds: [
      { priority: 'HIGH', max_connections: 1, track_remaining: true },
      { max_retries: 0, max_pending_requests: 4_294_967_295 },
    ],
  },
  dns_refresh_rate: '2s',
  dns_failure_refresh_rate: { base_interval: '0.5s' },
  respect_dns_ttl: true,
  dns_lookup_family: 'V4_ONLY',
  upstream_bind_config: { source_address: { address: '127.0.0.9', port_value: 0 } },
  typed_extension_protocol_options: {
    'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
      '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
      common_http_protocol_options: { idle_timeout: '0s', max_connection_duration: '60s', max_headers_count: 7 },
    },
  },
  load_assignment: {
    cluster_name: 'c',
    policy: { overprovisioning_factor: 200 },
    endpoints: [
      {
        locality: { region: 'r', sub_zone: 's' },
        priority: 1,
        lb_endpoints: [
          {
            endpoint: { hostname: 'h', address: { socket_address: { address: '::1', port_value: 80 } } },
            health_status: 'UNHEALTHY',
            load_balancing_weight: 3,
          },
          { endpoint: { address: { pipe: { path: '/run/x.sock' } } } },
          { endpoint: { address: { socket_address: { address: 'example.com', port_value: 443 } } } },
        ],
      },
    ],
  },
};

t.test('configured fields are converted to milliseconds, bytes and numbers', async (t) => {
  const spec = clusterSpec(FULL);
  t.match(spec, {
    observabilityName: 'other',
    connectTimeoutMs: 250,
    perConnectionBufferLimit: 32768,
    maxRequestsPerConnection: 7,
    idleTimeoutMs: 0,
    maxConnectionDurationMs: 60_000,
    http1: { maxHeaders: 7 },
    thresholds: [
      { maxConnections: 1024, maxRetries: 0, maxPendingRequests: 4_294_967_295 },
      { maxConnections: 1, maxRetries: 3 },
    ],
    trackRemaining: [false, true],
    loadBalancer: {
      policy: `${POLICIES}.least_request`,
      settings: {
        choiceCount: 5,
        scansAll: false,
        activeRequestBias: { runtimeKey: 'x', value: 0 },
        slowStart: undefined,
      },
      countsActiveRequests: true,
    },
    health: { panicThreshold: 0 },
  });
  t.same([...spec.sourceAddress!.subarray(4, 8)], [127, 0, 0, 9]);
  t.same(structuredClone(spec), spec, 'can be posted to workers');
  t.match(discoverySpec(FULL).dns, {
    family: 'V4_ONLY',
    refreshMs: 2000,
    respectTtl: true,
    failureRefresh: { baseMs: 500, maxMs: 5000 },
  });
});

t.test('endpoints keep their order, weight, locality and health; names remain unresolved', async (t) => {
  const { endpoints } = discoverySpec(FULL);
  t.match(endpoints[0], {
    host: '::1',
    port: 80,
    hostname: 'h',
    weight: 3,
    priority: 1,
    locality: { region: 'r', zone: '', subZone: 's' },
    healthFlags: HealthFlag.FailedEdsHealth,
  });
  const hosts = endpoints.map(staticEndpoint);
  t.same(
    hosts.map((host) => host && addressText(host.address)),
    ['[::1]:80', '/run/x.sock', undefined],
  );
});

t.test('an invalid source address is refused', async (t) => {
  const config = { ...FULL, upstream_bind_config: { source_address: { address: 'eth0', port_value: 0 } } };
  t.throws(() => clusterSpec(config), /'eth0' is not an IP address/);
});

t.test('the panic threshold is truncated to whole percents', async (t) => {
  const common_lb_config = { healthy_panic_threshold: { value: 50.9 } };
  t.equal(clusterSpec({ name: 'a', common_lb_config }).health.panicThreshold, 50);
});

t.test('load_balancing_policy takes precedence, and its first implemented policy is used', async (t) => {
  const balancer = (...policies: [string, object?][]) =>
    clusterSpec({
      name: 'c',
      lb_policy: 'LEAST_REQUEST',
      load_balancing_policy: {
        policies: policies.map(([name, fields]) => {
          const type = name.split('_').map((word) => word[0]!.toUpperCase() + word.slice(1));
          const message = `envoy.extensions.load_balancing_policies.${name}.v3.${type.join('')}`;
          return {
            typed_extension_config: { name, typed_config: { '@type': `type.googleapis.com/${message}`, ...fields } },
          };
        }),
      },
    }).loadBalancer;
  t.match(balancer(['round_robin'], ['random']), { policy: `${POLICIES}.round_robin` });
  t.match(balancer(['pick_first'], ['random'], ['round_robin']), { policy: `${POLICIES}.random` });
  t.match(balancer(['least_request']), {
    policy: `${POLICIES}.least_request`,
    settings: {
      choiceCount: 2,
      scansAll: false,
      activeRequestBias: { runtimeKey: '', value: 1 },
      slowStart: undefined,
    },
  });
  const fields = { choice_count: 7, active_request_bias: { default_value: 0.5, runtime_key: 'k' } };
  t.same(balancer(['least_request', fields]).settings, {
    choiceCount: 7,
    scansAll: false,
    slowStart: undefined,
    activeRequestBias: { runtimeKey: 'k', value: 0.5 },
  });
  const ring = { usesHostname: false, usesMurmur: false, minSize: 1024, maxSize: 8388608 };
  t.match(balancer(['ring_hash']), { policy: `${POLICIES}.ring_hash`, settings: ring, picksByHash: true });
  const sizes = { minimum_ring_size: '7', maximum_ring_size: '9', use_hostname_for_hashing: true };
  t.same(balancer(['ring_hash', sizes]).settings, { usesHostname: true, usesMurmur: false, minSize: 7, maxSize: 9 });
  const hashing = { consistent_hashing_lb_config: {}, use_hostname_for_hashing: true };
  t.same(balancer(['ring_hash', hashing]).settings, ring, 'the newer field takes precedence');
  const byName = { use_hostname_for_hashing: true };
  t.match(balancer(['maglev', { table_size: '7', consistent_hashing_lb_config: byName }]), {
    policy: `${POLICIES}.maglev`,
    settings: { usesHostname: true, tableSize: 7 },
    picksByHash: true,
  });
});

t.test('lb_policy takes its options from its own config field', async (t) => {
  const balancer = (fields: object) => clusterSpec({ name: 'c', ...fields }).loadBalancer;
  t.match(balancer({ lb_policy: 'MAGLEV' }), {
    policy: `${POLICIES}.maglev`,
    settings: { usesHostname: false, tableSize: 65537 },
  });
  const consistent_hashing_lb_config = { use_hostname_for_hashing: true };
  t.match(
    balancer({
      lb_policy: 'RING_HASH',
      ring_hash_lb_config: { minimum_ring_size: '5' },
      common_lb_config: { consistent_hashing_lb_config },
    }),
    {
      policy: `${POLICIES}.ring_hash`,
      settings: { usesHostname: true, usesMurmur: false, minSize: 5, maxSize: 8388608 },
    },
  );
});

t.test('HTTP/1.1 options apply with use_downstream_protocol_config, too', async (t) => {
  const dropsTrailers = (fields: object) => {
    const name = 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions';
    const options = { '@type': `type.googleapis.com/${name}`, ...fields };
    return clusterSpec({ name: 'c', typed_extension_protocol_options: { [name]: options } }).http1.dropsTrailers;
  };
  const http_protocol_options = { enable_trailers: true };
  t.equal(dropsTrailers({ explicit_http_config: { http_protocol_options } }), false);
  t.equal(dropsTrailers({ use_downstream_protocol_config: { http_protocol_options } }), false);
  t.equal(dropsTrailers({ use_downstream_protocol_config: {} }), true);
});
