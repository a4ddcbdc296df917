// Upstream HTTP filters of clusters and routers: only some filters can stand there, and the codec ends the list.

import type { ExtensionCatalog } from '../catalog/extension.js';
import { UPSTREAM_CODEC } from '../fields/upstream-filters.js';
import type { HttpFilter } from '../generated/api.js';
import { messageNameOf } from '../schema/message-name.js';
import type { Path } from '../text/path.js';
import type { Problems } from '../text/problems.js';

const ONLY_CODEC = `The codec filter is the only valid terminal upstream HTTP filter, use '${UPSTREAM_CODEC}'`;

/** Checks a list of upstream filters, which stands at `path`. */
export function checkUpstreamFilters(
  filters: readonly HttpFilter[] | undefined,
  path: Path,
  catalog: ExtensionCatalog,
  problems: Problems,
): void {
  filters?.forEach((filter, index) => {
    const why = filter && refusalOf(filter, index === filters.length - 1, catalog);
    if (why !== undefined) problems.error([...path, index, ...why.at], why.text);
  });
}

interface Refusal {
  readonly at: Path;
  readonly text: string;
}

function refusalOf(filter: HttpFilter, isLast: boolean, catalog: ExtensionCatalog): Refusal | undefined {
  const { config_discovery: discovery, disabled, name = '', typed_config: config } = filter;
  if (discovery !== undefined) {
    const text = 'configurations of upstream filters are not discovered: set typed_config';
    return { at: ['config_discovery'], text };
  }
  const url = config?.['@type'] ?? '';
  const type = messageNameOf(url);
  if (type === UPSTREAM_CODEC) return refusalOfCodec(isLast, disabled);
  if (isLast) return { at: [], text: ONLY_CODEC };
  const found = catalog.byTypeUrl(url, 'envoy.filters.http');
  // The schema's checks have reported it, unless it is optional.
  if (found === undefined && filter.is_optional !== true) return undefined;
  if (found?.runsUpstream !== true) {
    const known = catalog.list().filter((each) => each.runsUpstream === true);
    const others = known.map((each) => `'${each.name}'`).join(', ');
    const text = `Didn't find a registered implementation for '${name}' with type URL: '${url}': upstream filters can be ${others}`;
    return { at: ['typed_config', '@type'], text };
  }
  const own = messageNameOf(found.typeUrls[0]!);
  if (type === own) return undefined;
  const text = `it is the per-route configuration of '${found.name}'; the filter needs ${own}`;
  return { at: ['typed_config', '@type'], text };
}

function refusalOfCodec(isLast: boolean, isDisabled: boolean | undefined): Refusal | undefined {
  if (!isLast) return { at: [], text: 'the upstream codec must be the last filter, but other filters follow it' };
  return isDisabled ? { at: ['disabled'], text: 'the upstream codec ends the list and cannot be disabled' } : undefined;
}
