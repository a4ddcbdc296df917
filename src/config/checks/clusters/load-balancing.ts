// Load balancing of clusters: options without an effect, and policy settings.

import type { ExtensionCatalog } from '../../catalog/extension.js';
import { validateExtension } from '../../check.js';
import { LEGACY_POLICIES, legacyPolicy } from '../../fields/load-balancing.js';
import type { Cluster, Cluster_CommonLbConfig } from '../../generated/api.js';
import type { Path } from '../../text/path.js';
import type { Problems } from '../../text/problems.js';

/** Checks the policy of lb_policy. The policy of load_balancing_policy has been checked with its message. */
export function checkLoadBalancing(cluster: Cluster, path: Path, catalog: ExtensionCatalog, problems: Problems): void {
  checkUnused(cluster, path, problems);
  if (cluster.load_balancing_policy !== undefined) return;
  if (cluster.lb_policy === 'LOAD_BALANCING_POLICY_CONFIG') {
    if (problems.has([...path, 'load_balancing_policy'])) return;
    problems.error([...path, 'lb_policy'], 'it needs load_balancing_policy: set that, or another lb_policy');
    return;
  }
  const { config, placeOf } = legacyPolicy(cluster);
  const extension = catalog.byTypeUrl(config['@type'], BALANCERS);
  if (extension === undefined) return;
  validateExtension(extension, config, problems, { path, placeOf: (inner) => [...path, ...placeOf(inner)] });
}

/** Reports options of policies other than the one in use. */
function checkUnused(cluster: Cluster, path: Path, problems: Problems): void {
  if (problems.has([...path, 'lb_policy'])) return;
  const { common_lb_config: common, lb_policy: policy = 'ROUND_ROBIN' } = cluster;
  const refuse = (at: Path, policies: readonly string[]) => {
    if (cluster.load_balancing_policy !== undefined) {
      const what = 'it has no effect because load_balancing_policy is set: set it there, or leave it out';
      problems.error(at, what, 'key');
    } else if (!policies.includes(policy)) {
      const which = policies.map((name) => `'lb_policy: ${name}'`).join(' or ');
      problems.error(at, `it has an effect with ${which} only: set that, or leave it out`, 'key');
    }
  };
  for (const [name, { options }] of Object.entries(LEGACY_POLICIES)) {
    // ROUND_ROBIN is the default, and control planes set its options for every cluster.
    if (name !== 'ROUND_ROBIN' && options?.of(cluster) !== undefined) refuse([...path, options.field], [name]);
  }
  const all = Object.keys(LEGACY_POLICIES);
  const hashing = all.filter((name) => LEGACY_POLICIES[name]!.hashes);
  for (const [field, policies] of Object.entries({
    consistent_hashing_lb_config: hashing,
    locality_weighted_lb_config: all,
    // It is accepted where it has no effect in Envoy either.
    zone_aware_lb_config: all,
  })) {
    if (common?.[field as keyof Cluster_CommonLbConfig] !== undefined)
      refuse([...path, 'common_lb_config', field], policies);
  }
}

/** The category of load-balancing policies. */
const BALANCERS = 'envoy.load_balancing_policies';
