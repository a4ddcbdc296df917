// What the upstream HTTP filters of one version of a cluster need of the primary.

import type { ExtensionFinder, PrimarySecrets } from '../../../extensions/factories.js';
import { upstreamScopes, upstreamSecrets } from '../../../extensions/upstream-filters.js';
import type { ScopeRef } from '../../../stats/thread-stats.js';
import type { ClusterSpec } from '../../../upstream/cluster-config.js';
import type { InitManager } from '../../init/init-manager.js';
import type { VersionResources } from './version-resources.js';

export interface FiltersContext {
  readonly extensions: ExtensionFinder;
  /** Returns the secrets that workers can get. */
  readonly filterSecrets: () => PrimarySecrets;
}

/**
 * Returns the scopes of the filters by statScopeKey(); undefined: there are none. `resources` releases everything; `init` waits for secrets.
 * Throws a BatonError for a secret that cannot be used, and a RangeError when memory is short.
 */
export function prepareFilters(
  { httpFilters = [] }: ClusterSpec,
  resources: VersionResources,
  { extensions, filterSecrets }: FiltersContext,
  init: InitManager,
): Readonly<Record<string, ScopeRef>> | undefined {
  if (httpFilters.length === 0) return undefined;
  const secrets = upstreamSecrets(httpFilters, extensions);
  if (secrets.length > 0) {
    const use = filterSecrets().use(secrets, (name, isLocal) => init.add(name, isLocal));
    resources.whenUnused(() => use.close());
  }
  const chain = { statPrefix: resources.shared.scope.prefix };
  return resources.addWorkerScopes(upstreamScopes(httpFilters, chain, extensions));
}
