// DNS caches of dynamic forward proxies: caches with the same name are one cache, so they need the same settings.

import { isDeepStrictEqual } from 'node:util';
import { shownName } from '../../../common/text/shown.js';
import type { Bootstrap, DnsCacheConfig } from '../../generated/api.js';
import { MessageFinder } from '../../schema/find-messages.js';
import type { Schema } from '../../schema/schema.js';
import { formatPath, type Path } from '../../text/path.js';
import type { Problems } from '../../text/problems.js';

export function checkDnsCaches(bootstrap: Bootstrap, schema: Schema, problems: Problems): void {
  const first = new Map<string, { readonly config: DnsCacheConfig; readonly path: Path }>();
  const finder = new MessageFinder(schema, 'envoy.extensions.common.dynamic_forward_proxy.v3.DnsCacheConfig');
  finder.find('envoy.config.bootstrap.v3.Bootstrap', { ...bootstrap }, (found, path) => {
    const config = found as DnsCacheConfig;
    const { name = '' } = config;
    const earlier = first.get(name);
    if (earlier === undefined) first.set(name, { config, path });
    else if (!isDeepStrictEqual(earlier.config, config) && !problems.has(path)) {
      const message = `config specified DNS cache '${shownName(name)}' with different settings`;
      problems.error(path, () => `${message}: ${formatPath(earlier.path)} is another`);
    }
  });
}
