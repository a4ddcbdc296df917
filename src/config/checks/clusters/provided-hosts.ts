// Clusters that determine the host of each request themselves: ORIGINAL_DST. They need the policy CLUSTER_PROVIDED, which no other
// cluster can have.

import type { ExtensionCatalog } from '../../catalog/extension.js';
import { discoveryType } from '../../fields/discovery.js';
import { CLUSTER_PROVIDED, policyMessage } from '../../fields/load-balancing.js';
import type { Cluster } from '../../generated/api.js';
import { messageNameOf } from '../../schema/message-name.js';
import type { Path } from '../../text/path.js';
import type { Problems } from '../../text/problems.js';

export function checkProvidedHosts(cluster: Cluster, path: Path, catalog: ExtensionCatalog, problems: Problems): void {
  const fields = ['type', 'cluster_type', 'lb_policy', 'load_balancing_policy'];
  if (fields.some((field) => problems.has([...path, field]))) return;
  const isPolicy = (url: string) => catalog.byTypeUrl(url, 'envoy.load_balancing_policies') !== undefined;
  const isProvided = messageNameOf(policyMessage(cluster, isPolicy)['@type']) === CLUSTER_PROVIDED;
  const { lb_policy: policy = 'ROUND_ROBIN', load_balancing_policy: list } = cluster;
  const at = [...path, list === undefined ? 'lb_policy' : 'load_balancing_policy'];
  if (discoveryType(cluster) !== 'ORIGINAL_DST') {
    const what = `a cluster that is not of type ORIGINAL_DST does not determine the host of a request: use another policy`;
    if (isProvided) problems.error(at, what);
    return;
  }
  if (!isProvided) {
    const name = list === undefined ? `LB policy ${policy}` : 'this policy';
    problems.error(
      list === undefined && cluster.lb_policy === undefined ? path : at,
      `${name} is not valid for a cluster of type ORIGINAL_DST: set 'lb_policy: CLUSTER_PROVIDED'`,
    );
  }
  checkDestinations(cluster, path, problems);
}

/** A header's name, or a pseudo-header that requests have here. */
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
