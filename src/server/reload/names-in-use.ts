// Clusters that a part of the configuration still names that stays as it is.

import type { Bootstrap } from '../../config/generated/api.js';
import { formatPath, type PathPart } from '../../config/text/path.js';

/**
 * Why these clusters cannot be removed: with a partial reload sinks and the like stay that the new configuration would have
 * changed. Any text counts that is the name of one: the configuration as a whole was never checked.
 */
export function namesStillInUse(removed: readonly string[], bootstrap: Bootstrap): string | undefined {
  if (removed.length === 0) return undefined;
  const names = new Set(removed);
  const found = find(names, { ...bootstrap, static_resources: undefined, node: undefined }, []);
  return found && `cluster '${found.name}' cannot be removed: ${found.path}, which needs a restart to change, names it`;
}

function find(
  names: ReadonlySet<string>,
  value: unknown,
  path: PathPart[],
): { readonly name: string; readonly path: string } | undefined {
  if (typeof value === 'string') return names.has(value) ? { name: value, path: formatPath(path) } : undefined;
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [key, held] of Object.entries(value)) {
    const found = find(names, held, [...path, Array.isArray(value) ? Number(key) : key]);
    if (found !== undefined) return found;
  }
  return undefined;
}
