// HTTP filters whose configuration is discovered (ECDS): rules that the primary and the workers share.

import { BatonError } from '../common/errors/errors.js';
import type { Any, ExtensionConfigSource, HttpFilter } from '../config/generated/api.js';
import { messageNameOf } from '../config/schema/message-name.js';
import type { ExtensionFinder, HttpFilterExtension } from './factories.js';

/** Returns the key of a filter's subscription: equal for filters with the same name and config source. */
export function keyOfDiscovered({ name, config_discovery: discovery }: HttpFilter): string {
  return JSON.stringify([name ?? '', discovery!.config_source]);
}

/** Returns the extension that a discovered `config` configures. Throws a BatonError if `discovery` does not allow it. */
export function discoveredExtension(
  name: string,
  config: Any,
  discovery: ExtensionConfigSource,
  extensions: ExtensionFinder,
): HttpFilterExtension {
  const type = messageNameOf(config['@type']);
  const types = (discovery.type_urls ?? []).map(messageNameOf);
  if (!types.includes(type)) {
    throw refusal(`filter config has type URL ${type} but expect ${types.join(', ')}`);
  }
  const extension = extensions.httpFilter(config);
  if (extension.isTerminal) {
    throw refusal(
      `terminal filter named ${name} of type ${extension.name} must be the last filter in a http filter chain`,
    );
  }
  const own = messageNameOf(extension.typeUrls[0]!);
  if (type !== own) throw refusal(`it is the per-route configuration of '${extension.name}'; the filter needs ${own}`);
  return extension;
}

function refusal(why: string): BatonError {
  return new BatonError('CONFIG_INVALID', why);
}
