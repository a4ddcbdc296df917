// The cluster specifier plugins of a worker.

import type { ExtensionFinder, SpecifierContext } from '../../extensions/factories.js';
import type { ClusterSpecifiers } from '../../http/routing/actions/cluster-specifier.js';

export function specifiersOf(extensions: ExtensionFinder, context: SpecifierContext): ClusterSpecifiers {
  return {
    create: (config, where) => extensions.clusterSpecifier(config)?.createOnWorker(config, context, where),
  };
}
