// HTTP filters whose configuration is discovered (ECDS): accepted types and the default configuration.

import type { Extension } from '../../catalog/extension.js';
import type { HttpFilter } from '../../generated/api.js';
import { messageNameOf } from '../../schema/message-name.js';
import type { Path } from '../../text/path.js';
import type { CheckContext } from '../check-context.js';

export function checkDiscoveredFilter(filter: HttpFilter, isLast: boolean, path: Path, context: CheckContext): void {
  const { problems } = context;
  const { config_source, default_config: byDefault, type_urls = [], ...discovery } = filter.config_discovery!;
  const at = [...path, 'config_discovery'];
  if (isLast) problems.error(at, 'a filter whose configuration is discovered cannot end the chain');
  if (!config_source) problems.error([...at, 'config_source'], 'the source of the configuration is missing');
  type_urls.forEach((url, index) => {
    const reason = refusalOf(url, context);
    if (reason !== undefined) problems.error([...at, 'type_urls', index], reason);
  });
  if (byDefault) {
    const type = messageNameOf(byDefault['@type']);
    const types = type_urls.map(messageNameOf);
    if (!types.includes(type)) {
      const reason = `filter config has type URL ${type} but expect ${types.join(', ')}`;
      problems.error([...at, 'default_config', '@type'], reason);
    }
  } else if (discovery.apply_default_config_without_warming) {
    const reason = `filter config ${filter.name ?? ''} applied without warming but has no default config`;
    problems.error([...at, 'apply_default_config_without_warming'], reason);
  }
}

/** Returns why a type of configuration cannot be used. */
function refusalOf(url: string, { catalog }: CheckContext): string | undefined {
  const found: Extension | undefined = catalog.byTypeUrl(url);
  if (found?.category !== 'envoy.filters.http') return `no factory found for a required type URL ${url}`;
  if (found.isTerminal) return `'${found.name}' is terminal: a filter whose configuration is discovered cannot be`;
  const own = messageNameOf(found.typeUrls[0]!);
  return messageNameOf(url) === own
    ? undefined
    : `it is the per-route configuration of '${found.name}'; the filter needs ${own}`;
}
