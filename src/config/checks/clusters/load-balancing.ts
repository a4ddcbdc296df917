// How clusters choose hosts: options that have an effect, and can be obeyed.

import { loadBalancing, policyOptions, ringSizes, tableSize } from '../../fields/load-balancing.js';
import type { Cluster } from '../../generated/api.js';
import type { Path } from '../../text/path.js';
import type { Problems } from '../../text/problems.js';

export function checkLoadBalancing(cluster: Cluster, path: Path, problems: Problems): void {
  checkUnused(cluster, path, problems);
  const { options, path: inner, policy } = loadBalancing(cluster);
  const at = [...path, ...inner];
  if (policy === 'LEAST_REQUEST') {
    const bias = options.active_request_bias?.default_value ?? 0;
    const biasAt = [...at, 'active_request_bias', 'default_value'];
    if (!(Number(bias) >= 0 && Number.isFinite(Number(bias))) && !problems.has(biasAt)) {
      problems.error(biasAt, `it must be a number of at least 0, found ${bias}`);
    }
  }
  if (policy === 'RING_HASH') checkRing(ringSizes(options), at, problems);
  if (policy === 'MAGLEV' && !isPrime(tableSize(options))) {
    const sizeAt = [...at, 'table_size'];
    if (!problems.has(sizeAt)) problems.error(sizeAt, `it must be a prime number, found ${tableSize(options)}`);
  }
}

/** Reports what is said to another policy than the one that counts. */
function checkUnused(cluster: Cluster, path: Path, problems: Problems): void {
  if (problems.has([...path, 'lb_policy'])) return;
  const { common_lb_config: common, lb_policy: policy = 'ROUND_ROBIN' } = cluster;
  const refuse = (at: Path, policies: readonly string[]) => {
    if (cluster.load_balancing_policy !== undefined) {
      const what = 'it has no effect beside load_balancing_policy, which counts: set it there, or leave it out';
      problems.error(at, what, 'key');
    } else if (!policies.includes(policy)) {
      const which = policies.map((name) => `'lb_policy: ${name}'`).join(' or ');
      problems.error(at, `it has an effect with ${which} only: set that, or leave it out`, 'key');
    }
  };
  for (const { field, options, policy: name } of policyOptions(cluster)) {
    if (options !== undefined) refuse([...path, field], [name]);
  }
  const hashingAt = [...path, 'common_lb_config', 'consistent_hashing_lb_config'];
  if (common?.consistent_hashing_lb_config !== undefined) refuse(hashingAt, ['RING_HASH', 'MAGLEV']);
}

function checkRing({ minSize, maxSize }: ReturnType<typeof ringSizes>, at: Path, problems: Problems): void {
  const minAt = [...at, 'minimum_ring_size'];
  const maxAt = [...at, 'maximum_ring_size'];
  if (problems.has(minAt) || problems.has(maxAt)) return;
  // A ring without places would have no host.
  if (minSize < 1) problems.error(minAt, `it must be at least 1, found ${minSize}`);
  else if (minSize > maxSize) {
    const what = `minimum_ring_size (${minSize}) > maximum_ring_size (${maxSize})`;
    problems.error(maxAt, `${what}: set the one to at least the other`);
  }
}

/** With another number of entries a host whose step is a divisor would find no free one. */
function isPrime(number: number): boolean {
  if (!(number >= 2)) return false;
  for (let divisor = 2; divisor * divisor <= number; divisor++) if (number % divisor === 0) return false;
  return true;
}
