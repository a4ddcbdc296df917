// Clusters that determine the host of each request themselves: ORIGINAL_DST, dynamic forward proxies and aggregates. They need the policy
// CLUSTER_PROVIDED, which otherwise only Redis clusters can have.

import type { ExtensionCatalog } from '../../catalog/extension.js';
import { discoveryType, forwardProxyConfig } from '../../fields/discovery.js';
import { httpOptions, upstreamHttpOptions } from '../../fields/http-options.js';
import { CLUSTER_PROVIDED, policyMessage } from '../../fields/load-balancing.js';
import type { Cluster } from '../../generated/api.js';
import { messageNameOf } from '../../schema/message-name.js';
import type { Path } from '../../text/path.js';
import type { Problems } from '../../text/problems.js';
import { checkResolver } from './resolvers.js';

export function checkProvidedHosts(cluster: Cluster, path: Path, catalog: ExtensionCatalog, problems: Problems): void {
  const fields = ['type', 'cluster_type', 'lb_policy', 'load_balancing_policy'];
  if (fields.some((field) => problems.has([...path, field]))) return;
  const isPolicy = (url: string) => catalog.byTypeUrl(url, 'envoy.load_balancing_policies') !== undefined;
  const isProvided = messageNameOf(policyMessage(cluster, isPolicy)['@type']) === CLUSTER_PROVIDED;
  const { lb_policy: policy = 'ROUND_ROBIN', load_balancing_policy: list } = cluster;
  const at = [...path, list === undefined ? 'lb_policy' : 'load_balancing_policy'];
  const type = discoveryType(cluster);
  if (type === 'REDIS') return checkRedisCluster(cluster, path, problems);
  if (type !== 'ORIGINAL_DST' && type !== 'DYNAMIC_FORWARD_PROXY' && type !== 'AGGREGATE') {
    const what = `a cluster of type ${type} does not determine the host of a request: use another policy`;
    if (isProvided) problems.error(at, what);
    return;
  }
  if (!isProvided) {
    const name = list === undefined ? `LB policy ${policy}` : 'this policy';
    problems.error(
      list === undefined && cluster.lb_policy === undefined ? path : at,
      `${name} is not valid for a cluster of type ${type}: set 'lb_policy: CLUSTER_PROVIDED'`,
    );
  }
  if (type === 'ORIGINAL_DST') checkDestinations(cluster, path, problems);
  else if (type === 'DYNAMIC_FORWARD_PROXY') checkForwardProxy(cluster, path, problems);
}

function checkRedisCluster(cluster: Cluster, path: Path, problems: Problems): void {
  const endpoints = (cluster.load_assignment?.endpoints ?? []).flatMap((group) => group?.lb_endpoints ?? []);
  if (endpoints.length > 0 || problems.has([...path, 'load_assignment'])) return;
  problems.error(path, 'a Redis cluster needs a load_assignment with one of its nodes, or a name of them');
}

function checkForwardProxy(cluster: Cluster, path: Path, problems: Problems): void {
  const config = forwardProxyConfig(cluster)!;
  const at = [...path, 'cluster_type', 'typed_config'];
  if (!config.dns_cache_config && !problems.has([...at, 'sub_clusters_config']) && !problems.has(at))
    problems.error([...path, 'cluster_type'], 'a dynamic forward proxy needs a dns_cache_config');
  checkResolver(
    config.dns_cache_config?.typed_dns_resolver_config,
    [...at, 'dns_cache_config', 'typed_dns_resolver_config'],
    problems,
  );
  const { auto_san_validation: isVerified, auto_sni: isSent } = upstreamHttpOptions(cluster) ?? {};
  const own = httpOptions(cluster)?.upstream_http_protocol_options ?? cluster.upstream_http_protocol_options;
  if (own !== undefined && !(isVerified && isSent) && !config.allow_insecure_cluster_options) {
    const what =
      'dynamic_forward_proxy cluster must have auto_sni and auto_san_validation true unless allow_insecure_cluster_options is set';
    problems.error(path, what);
  }
}

/** The name of a header, or of a pseudo-header that can be read here. */
const NAME = /^(:(path|method|authority)|[!#$%&'*+.^_`|~0-9a-z-]+)$/i;

function checkDestinations(cluster: Cluster, path: Path, problems: Problems): void {
  if (cluster.load_assignment !== undefined) {
    const what = 'ORIGINAL_DST clusters must have no load assignment configured: requests name their hosts';
    problems.error([...path, 'load_assignment'], what, 'key');
  }
  const { http_header_name: name = '', use_http_header: isUsed = false } = cluster.original_dst_lb_config ?? {};
  if (name === '') return;
  const at = [...path, 'original_dst_lb_config', 'http_header_name'];
  if (!isUsed) problems.error(at, 'it has an effect with use_http_header only: set that, or leave it out');
  else if (!NAME.test(name)) problems.error(at, `'${name}' is not the name of a header`);
}
