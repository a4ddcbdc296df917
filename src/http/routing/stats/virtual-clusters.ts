// virtual_clusters of a virtual host: kinds of requests that are counted apart. A request belongs to the first one that it matches.

import { BatonError, buildEach } from '../../../common/errors/errors.js';
import type { VirtualCluster as VirtualClusterConfig } from '../../../config/generated/api.js';
import type { HeaderBlock } from '../../headers/header-block.js';
import { compileHeaderRules, type HeaderRule, matchesAll } from '../matching/header-rule.js';
import type { RouteCounts } from './route-counts.js';
import { OTHER, virtualClusterPrefix } from './stat-prefixes.js';

export interface VirtualCluster {
  /** '' for requests that match no configured one, as in Envoy. */
  readonly name: string;
  /** Undefined where nothing is counted: the table only checks a configuration. */
  readonly counts: RouteCounts | undefined;
}

/** Returns the stats with a prefix; undefined where nothing is counted. */
export type CountsOf = (prefix: string) => RouteCounts | undefined;

export class VirtualClusters {
  readonly #rules: readonly (readonly HeaderRule[])[];
  readonly #clusters: readonly VirtualCluster[];
  readonly #other: VirtualCluster;

  private constructor(
    virtualHost: string,
    configs: readonly VirtualClusterConfig[],
    where: string,
    countsOf: CountsOf,
  ) {
    const counts = (name: string) => countsOf(virtualClusterPrefix(virtualHost, name));
    this.#rules = buildEach(configs, ({ headers }, index) => rulesOf(headers, `${where}[${index}].headers`));
    this.#clusters = configs.map(({ name = '' }) => ({ name, counts: counts(name) }));
    this.#other = { name: '', counts: counts(OTHER) };
  }

  /**
   * Returns undefined without virtual clusters.
   * @throws BatonError CONFIG_INVALID or REGEX_INVALID; `where` is the path of the list
   */
  static of(
    virtualHost: string,
    configs: readonly VirtualClusterConfig[] | undefined,
    where: string,
    countsOf: CountsOf,
  ): VirtualClusters | undefined {
    if (configs === undefined || configs.length === 0) return undefined;
    return new VirtualClusters(virtualHost, configs, where, countsOf);
  }

  /** Returns the virtual cluster of a request. */
  find(headers: HeaderBlock): VirtualCluster {
    for (let i = 0; i < this.#rules.length; i++) if (matchesAll(this.#rules[i]!, headers)) return this.#clusters[i]!;
    return this.#other;
  }
}

function rulesOf(headers: VirtualClusterConfig['headers'], where: string): readonly HeaderRule[] {
  const rules = compileHeaderRules(headers, where);
  if (rules === undefined) throw new BatonError('CONFIG_INVALID', 'a virtual cluster needs headers', { where });
  return rules;
}
