// Which virtual hosts of an update cannot be used beside others, because a domain is taken.

import type { VirtualHost } from '../../../config/generated/api.js';
import type { Resource } from '../../../xds/resource.js';

/**
 * The first domain of each of `fresh` that another virtual host has: one of `own`, one of `kept` that no usable one of its name
 * replaces, or a usable one before it.
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
      // The version before it stays then, and has its domains.
      if (kept.has(name)) isDone = false;
    }
    if (isDone) return clashes;
  }
}

/** They are compared without regard to case. */
function domainsOf({ domains = [] }: VirtualHost): string[] {
  return domains.map((domain) => domain.toLowerCase());
}
