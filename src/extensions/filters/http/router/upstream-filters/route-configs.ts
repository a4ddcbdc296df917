// How routes configure upstream HTTP filters: the entries of typed_per_filter_config by name. Which clusters a route leads to, and
// which filters they have, is known only when a try begins.

import { callExtension } from '../../../../../common/errors/defects.js';
import type { Any } from '../../../../../config/generated/api.js';
import type { CompileUpstream, FILTER_OFF, FILTER_ON } from '../../../../../http/routing/tables/route-levels.js';
import type { ExtensionFinder, HttpFilterExtension } from '../../../../factories.js';

/** A compiled configuration, and the extension that has compiled it. */
export interface UpstreamRouteConfig {
  readonly extension: HttpFilterExtension;
  readonly config: unknown;
}

/** By the names of filters. */
export type UpstreamRouteConfigs = ReadonlyMap<string, UpstreamRouteConfig | typeof FILTER_OFF | typeof FILTER_ON>;

/** Returns a function that compiles the configurations of one name; those of filters that cannot stand there are left out. */
export function upstreamRouteConfigs(extensions: ExtensionFinder): CompileUpstream {
  return (configs, where, runtime, place): UpstreamRouteConfig | undefined => {
    const extension = upstreamFilter(configs.at(-1)!, extensions);
    if (extension === undefined) return undefined;
    const own = configs.filter((config) => upstreamFilter(config, extensions) === extension);
    const config = callExtension('compileRouteConfig', extension.name, () =>
      extension.compileRouteConfig?.(own, where, runtime, place),
    );
    return { extension, config };
  };
}

function upstreamFilter(config: Any, extensions: ExtensionFinder): HttpFilterExtension | undefined {
  if (!extensions.hasHttpFilter(config)) return undefined;
  const extension = extensions.httpFilter(config);
  return extension.isTerminal !== true && extension.runsUpstream === true ? extension : undefined;
}
