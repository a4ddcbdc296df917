// The upstream HTTP filters of clusters: what they need on the primary, and their creation on a worker.

import { callExtension } from '../common/errors/defects.js';
import type { HttpFilter, SdsSecretConfig } from '../config/generated/api.js';
import { statScopeKey } from '../stats/scope-prefix.js';
import type { ScopeRequest } from '../stats/store.js';
import type { ClusterSnapshot } from '../upstream/cluster-snapshot.js';
import type { RequestFilters } from '../upstream/request-filters.js';
import type { ExtensionFinder, HttpChain, HttpFilterExtension, WorkerContext } from './factories.js';
import { createFilterList } from './filters/http/router/upstream-filters/filter-list.js';

/** Returns the scopes of the filters. */
export function upstreamScopes(
  filters: readonly HttpFilter[],
  chain: HttpChain,
  extensions: ExtensionFinder,
): ScopeRequest[] {
  return filters.flatMap(({ typed_config: config }) => {
    const extension = extensions.httpFilter(config!) as HttpFilterExtension;
    return callExtension('scopes', extension.name, () => extension.scopes?.(config!, chain) ?? []);
  });
}

/** Returns the secrets that the filters name. */
export function upstreamSecrets(filters: readonly HttpFilter[], extensions: ExtensionFinder): SdsSecretConfig[] {
  return filters.flatMap(({ typed_config: config }) => {
    const extension = extensions.httpFilter(config!);
    return callExtension('secrets', extension.name, () => [...(extension.secrets?.(config!) ?? [])]);
  });
}

/** Creates the filters of a cluster on a worker; undefined: it has none of its own. */
export function clusterFilters(
  { filterScopes = {}, scope, spec, specVersion }: ClusterSnapshot,
  context: WorkerContext,
): RequestFilters | undefined {
  if (spec.httpFilters === undefined) return undefined;
  const own: WorkerContext = {
    ...context,
    scope: (prefix, layout) => context.stats.scope(filterScopes[statScopeKey(prefix, layout)]!),
  };
  return createFilterList(spec.httpFilters, own, {
    statPrefix: scope.prefix,
    place: `cluster ${spec.name} version ${specVersion}`,
    bufferLimit: spec.perConnectionBufferLimit,
  });
}
