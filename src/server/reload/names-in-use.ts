// Finds removed clusters that unchanged parts of the configuration still name.

import type { Bootstrap } from '../../config/generated/api.js';
import { formatPath, type PathPart } from '../../config/text/path.js';

/**
 * Returns why these clusters cannot be removed: after a partial reload, sinks and others stay that the new configuration would
 * have changed. Any text that equals a cluster's name counts, because the combined configuration was never checked.
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
