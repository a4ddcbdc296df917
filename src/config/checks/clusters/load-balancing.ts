// Load balancing of clusters: options without an effect, and policy settings.

import type { ExtensionCatalog } from '../../catalog/extension.js';
import { validateExtension } from '../../check.js';
import {
  CLUSTER_PROVIDED,
  firstPolicy,
  LEGACY_POLICIES,
  legacyPolicy,
  OVERRIDE_HOST,
  SUBSET,
  subsetPolicy,
} from '../../fields/load-balancing.js';
import type { Any, Cluster, Cluster_CommonLbConfig, OverrideHost, Subset } from '../../generated/api.js';
import { messageNameOf } from '../../schema/message-name.js';
import type { Path } from '../../text/path.js';
import type { Problems } from '../../text/problems.js';

/** Checks the policy of lb_policy. The policy of load_balancing_policy has been checked with its message. */
export function checkLoadBalancing(cluster: Cluster, path: Path, catalog: ExtensionCatalog, problems: Problems): void {
  checkUnused(cluster, path, problems);
  checkSubsets(cluster, path, catalog, problems);
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
  const subsets = subsetPolicy(cluster, config);
  const wrapper = subsets && catalog.byTypeUrl(subsets['@type'], BALANCERS);
  if (wrapper !== undefined) validateExtension(wrapper, subsets!, problems, { path: [...path, 'lb_subset_config'] });
}

/** Reports subsets that the policy of the cluster cannot have. */
function checkSubsets(cluster: Cluster, path: Path, catalog: ExtensionCatalog, problems: Problems): void {
  const {
    common_lb_config: common,
    lb_policy: policy,
    lb_subset_config: config,
    load_balancing_policy: list,
  } = cluster;
  if (list !== undefined) checkNested(list, path, catalog, problems);
  if (config === undefined) return;
  const at = [...path, 'lb_subset_config'];
  if (list !== undefined) {
    problems.error(at, 'load_balancing_policy cannot be combined with lb_subset_config', 'key');
  } else if (policy === 'CLUSTER_PROVIDED') {
    problems.error(at, 'LB policy CLUSTER_PROVIDED cannot be combined with lb_subset_config', 'key');
  } else if (config.locality_weight_aware && common?.locality_weighted_lb_config === undefined) {
    const what = 'Locality weight aware subset LB requires that a locality_weighted_lb_config be set';
    problems.error([...at, 'locality_weight_aware'], `${what} in common_lb_config`);
  }
}

/** Reports a policy inside another one that cannot be there. */
function checkNested(
  list: NonNullable<Cluster['load_balancing_policy']>,
  path: Path,
  catalog: ExtensionCatalog,
  problems: Problems,
): void {
  const isPolicy = (url: string) => catalog.byTypeUrl(url, BALANCERS) !== undefined;
  const outer = firstPolicy(list, isPolicy) as Any & OverrideHost;
  const isOverriding = messageNameOf(outer['@type']) === OVERRIDE_HOST;
  const config = (isOverriding ? firstPolicy(outer.fallback_policy, isPolicy) : outer) as Any & Subset;
  const name = messageNameOf(config['@type']);
  if (isOverriding && (name === OVERRIDE_HOST || name === CLUSTER_PROVIDED)) {
    const what = `the policy in fallback_policy cannot be ${name}: use one that picks hosts, such as RoundRobin`;
    return problems.error([...path, 'load_balancing_policy'], what);
  }
  if (name !== SUBSET) return;
  const inner = messageNameOf(firstPolicy(config.subset_lb_policy, isPolicy)['@type']);
  if (inner === SUBSET || inner === OVERRIDE_HOST || inner === CLUSTER_PROVIDED) {
    const what = `the policy in subset_lb_policy cannot be ${inner}: use one that picks hosts, such as RoundRobin`;
    problems.error([...path, 'load_balancing_policy'], what);
  }
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
