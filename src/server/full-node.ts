// The node that a server reports of itself: the configured fields, the build and the extensions.

import { BUILD } from '../common/package/generated/build.js';
import { releaseNumber } from '../common/package/version.js';
import type { Node } from '../config/generated/api.js';
import { EXTENSIONS } from '../extensions/index.js';

/**
 * Returns the configured node with the program's name, build and extensions.
 * @param disabled `<category>/<name>` of extensions that no configuration may use
 */
export function fullNode(node: Node, disabled: readonly string[]): Node {
  const [major_number = 0, minor_number = 0, patch = 0] = releaseNumber()
    .split(/[.-]/)
    .map((part) => Number.parseInt(part, 10));
  return {
    ...node,
    user_agent_name: 'baton',
    user_agent_build_version: {
      version: { major_number, minor_number, patch },
      metadata: {
        'build.type': 'RELEASE',
        'revision.sha': BUILD.revision,
        'revision.status': BUILD.status,
        'ssl.version': 'OpenSSL',
      },
    },
    extensions: EXTENSIONS.map(({ category, name, typeUrls }) => ({
      name,
      category,
      type_urls: typeUrls.map((url) => url.slice(url.lastIndexOf('/') + 1)),
      ...(disabled.includes(`${category}/${name}`) && { disabled: true }),
    })).sort((a, b) => (`${a.category}/${a.name}` < `${b.category}/${b.name}` ? -1 : 1)),
  };
}
