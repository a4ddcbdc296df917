// Finds the virtual hosts of an update that cannot be used because another one has one of their domains.

import type { VirtualHost } from '../../../config/generated/api.js';
import type { Resource } from '../../../xds/resource.js';

/**
 * Returns, for each of `fresh`, the first domain that another virtual host has: one of `own`, one of `kept` that no usable host
 * of its name replaces, or an earlier usable one.
 */
export function domainClashes(
  own: readonly VirtualHost[],
  kept: ReadonlyMap<string, Resource<VirtualHost>>,
  fresh: readonly Resource<VirtualHost>[],
): ReadonlyMap<string, string> {
  const clashes = new Map<string, string>();
  const changed = fresh.filter(({ name, message }) => kept.get(name)?.message !== message);
  for (;;) {
    const candidates = changed.filter(({ name }) => !clashes.has(name));
    const replaced = new Set(candidates.map(({ name }) => name));
    const staying = [...kept].flatMap(([name, { message }]) => (replaced.has(name) ? [] : [message]));
    const taken = new Set([...own, ...staying].flatMap(domainsOf));
    let isDone = true;
    for (const { name, message } of candidates) {
      const domains = domainsOf(message);
      const clash = domains.find((domain) => taken.has(domain));
      if (clash === undefined) {
        for (const domain of domains) taken.add(domain);
        continue;
      }
      clashes.set(name, clash);
      // The previous version stays then, and keeps its domains.
      if (kept.has(name)) isDone = false;
    }
    if (isDone) return clashes;
  }
}

/** Returns the domains in lower case, since they are compared without regard to case. */
function domainsOf({ domains = [] }: VirtualHost): string[] {
  return domains.map((domain) => domain.toLowerCase());
}
