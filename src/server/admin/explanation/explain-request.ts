// Answers GET /explain: follows a request through the configuration in use, from the listener to the hosts of its cluster.

import type { ExplainedHttp, ExplainQuestion, Explanation } from '../../../admin/explanation.js';
import { BatonError } from '../../../common/errors/errors.js';
import { ownManager } from '../../../config/fields/own-routes.js';
import type { FilterChain } from '../../../config/generated/api.js';
import { addressText } from '../../../io/addresses/address.js';
import { FilterChainTable } from '../../../listener/filter-chain-match.js';
import type { ConnectionProperties } from '../../../listener/network-filter.js';
import type { PrimaryListener } from '../../listeners/version/primary-listener.js';
import type { RunningConfiguration } from '../../running/running-configuration.js';
import { explainHttp } from './explain-http.js';

/** Answers for each listener that is asked about, in steps. Throws a BatonError if the question cannot be answered. */
export function* explainRequest(
  running: RunningConfiguration,
  question: ExplainQuestion,
): Generator<void, readonly Explanation[]> {
  const explanations: Explanation[] = [];
  for (const listener of listenersOf(running, question.listener)) {
    explanations.push(yield* explainOn(listener, running, question));
  }
  return explanations;
}

function* explainOn(
  listener: PrimaryListener,
  running: RunningConfiguration,
  question: ExplainQuestion,
): Generator<void, Explanation> {
  const found = { listener: { name: listener.name, address: addressText(listener.address) } };
  const chain = chainOf(listener, question);
  if (chain === undefined) return found;
  const { config, name } = chain;
  const filters = config.filters ?? [];
  const filterChain = { name, networkFilters: filters.map((filter) => filter.name ?? '') };
  for (const { typed_config } of filters) {
    const manager = ownManager(typed_config);
    if (manager === undefined) continue;
    const http: ExplainedHttp = yield* explainHttp(running, manager, question, found.listener.address);
    return { ...found, filterChain, http };
  }
  return { ...found, filterChain };
}

/** Returns the named listener, or all that serve HTTP. */
function listenersOf({ listeners }: RunningConfiguration, name: string | undefined): PrimaryListener[] {
  const all = [...listeners.byName.values()];
  if (name === undefined) return all.filter(servesHttp);
  const found = all.filter((each) => each.name === name);
  if (found.length > 0) return found;
  throw refuse(`unknown listener '${name}'; there are ${all.map((each) => each.name).join(', ') || 'none'}`);
}

function refuse(message: string): BatonError {
  return new BatonError('OPTION_INVALID', message);
}

function servesHttp({ spec }: PrimaryListener): boolean {
  const { default_filter_chain: fallback = {}, filter_chains = [] } = spec.config;
  return [...filter_chains, fallback].some(({ filters = [] }) =>
    filters.some(({ typed_config }) => ownManager(typed_config) !== undefined),
  );
}

interface NamedChain {
  readonly name: string;
  readonly config: FilterChain;
}

/** Undefined if no chain takes the connection. */
function chainOf({ address, spec }: PrimaryListener, question: ExplainQuestion): NamedChain | undefined {
  const { default_filter_chain: fallback, filter_chains = [] } = spec.config;
  const chains = filter_chains.map((config, index) => ({
    match: config.filter_chain_match,
    chain: { name: config.name || `filter_chains[${index}]`, config },
  }));
  const last = fallback && { name: fallback.name || 'default_filter_chain', config: fallback };
  const properties: ConnectionProperties = {
    remote: question.source,
    direct: question.source,
    local: address,
    detected: {
      transportProtocol: question.isTls ? 'tls' : '',
      applicationProtocols: question.applicationProtocols,
      serverName: question.serverName.toLowerCase(),
      ja3: '',
      ja4: '',
    },
  };
  return new FilterChainTable<NamedChain>(chains, last).find(properties);
}
