// Checks that the filter chain matches of a listener are valid and unambiguous.

import { overlapOf } from '../../fields/filter-chains.js';
import type { CidrRange, FilterChain, FilterChainMatch, Listener } from '../../generated/api.js';
import { messageNameOf } from '../../schema/message-name.js';
import { formatPath, type Path } from '../../text/path.js';
import type { Problems } from '../../text/problems.js';
import { isPlainIp } from '../addresses.js';

/** Checks the filter chain matches of a listener at `path`. */
export function checkFilterChainMatches(listener: Listener, path: Path, problems: Problems): void {
  const { filter_chains: chains = [], default_filter_chain: fallback } = listener;
  const before = problems.errorCount;
  chains.forEach((chain, index) => {
    const match = chain?.filter_chain_match;
    if (match) checkMatch(match, [...path, 'filter_chains', index, 'filter_chain_match'], problems);
  });
  if (Object.keys(fallback?.filter_chain_match ?? {}).length > 0) {
    const at = [...path, 'default_filter_chain', 'filter_chain_match'];
    problems.error(at, 'the default filter chain accepts all connections that no other chain matches: leave it out');
  }
  warnOfUndetected(listener, path, problems);
  if (problems.errorCount === before) checkChoice(chains, [...path, 'filter_chains'], problems);
}

const LISTENER_FILTERS = 'envoy.extensions.filters.listener';
const PROXY_PROTOCOL = `${LISTENER_FILTERS}.proxy_protocol.v3.ProxyProtocol`;
const HTTP_INSPECTOR = `${LISTENER_FILTERS}.http_inspector.v3.HttpInspector`;
/** By criterion, the listener filters of this build that do not detect the property that it matches. */
const BLIND = {
  server_names: [PROXY_PROTOCOL, HTTP_INSPECTOR],
  application_protocols: [PROXY_PROTOCOL],
} as const;

/** Warns of criteria that no connection can meet, because no listener filter detects the property that they match. */
function warnOfUndetected(
  { filter_chains: chains = [], listener_filters = [] }: Listener,
  path: Path,
  problems: Problems,
): void {
  const present = listener_filters.map((filter) => messageNameOf(filter?.typed_config?.['@type'] ?? ''));
  for (const [index, chain] of chains.entries()) {
    for (const [field, blind] of Object.entries(BLIND)) {
      const isSet = (chain?.filter_chain_match?.[field as keyof typeof BLIND]?.length ?? 0) > 0;
      if (!isSet || !present.every((name) => blind.some((each) => each === name))) continue;
      problems.warn(
        [...path, 'filter_chains', index, 'filter_chain_match', field],
        'no connection matches: the listener filter envoy.filters.listener.tls_inspector is missing',
      );
    }
  }
}

function checkMatch(match: FilterChainMatch, path: Path, problems: Problems): void {
  checkRanges(match.prefix_ranges, [...path, 'prefix_ranges'], problems);
  checkRanges(match.direct_source_prefix_ranges, [...path, 'direct_source_prefix_ranges'], problems);
  checkRanges(match.source_prefix_ranges, [...path, 'source_prefix_ranges'], problems);
  match.server_names?.forEach((name, index) => {
    if (!name?.includes('*') || name.startsWith('*.')) return;
    const at = [...path, 'server_names', index];
    problems.error(
      at,
      "partial wildcards are not supported: write a whole name, or '*.' and a suffix like *.example.com",
    );
  });
}

function checkRanges(ranges: readonly CidrRange[] | undefined, path: Path, problems: Problems): void {
  ranges?.forEach((range, index) => {
    const prefix = range?.address_prefix;
    if (prefix === undefined || isPlainIp(prefix)) return;
    problems.error([...path, index, 'address_prefix'], `malformed IP address: ${prefix}`);
  });
}

/** Reports two chains that match the same connections equally well, with Envoy's message. */
function checkChoice(chains: readonly FilterChain[], path: Path, problems: Problems): void {
  // Chains with other errors are not compared.
  const isWrong = (chain: FilterChain | null, index: number) =>
    chain === null ||
    problems.has([...path, index, 'filter_chain_match']) ||
    Object.entries(chain.filter_chain_match ?? {}).some(
      ([field, value]: [string, unknown]) =>
        problems.has([...path, index, 'filter_chain_match', field]) || (Array.isArray(value) && value.includes(null)),
    );
  if (chains.some(isWrong)) return;
  const matches = chains.map((chain) => chain.filter_chain_match ?? {});
  const overlap = overlapOf(matches);
  if (overlap === undefined) return;
  const [first, second] = overlap;
  const names = `filter chain '${chains[second]?.name ?? ''}' has the same matching rules defined as '${chains[first]?.name ?? ''}'`;
  const isSame = JSON.stringify(matches[first]) === JSON.stringify(matches[second]);
  const what = isSame ? names : 'multiple filter chains with overlapping matching rules are defined';
  const at = [...path, second, ...(chains[second]?.filter_chain_match === undefined ? [] : ['filter_chain_match'])];
  problems.error(at, `${what}: see ${formatPath([...path, first])}`);
}
