// Clusters that configurations of extensions reference: they must exist.

import { describeDefect } from '../../../common/errors/defects.js';
import type { Any } from '../../generated/api.js';
import { type Path, type PathPart, parsePath } from '../../text/path.js';
import type { CheckContext } from '../check-context.js';
import { checkClusterName } from './cluster-name.js';

/** Searches `value`, which stands at `path`, for configurations of extensions. `mustExist`: clusters cannot be added later. */
export function checkNamedClusters(value: unknown, path: Path, context: CheckContext, mustExist: boolean): void {
  walk(value, [...path], context, mustExist);
}

function walk(value: unknown, path: PathPart[], context: CheckContext, mustExist: boolean): void {
  if (typeof value !== 'object' || value === null) return;
  const { '@type': url } = value as { readonly '@type'?: unknown };
  if (typeof url === 'string') checkNames(value as Any, path, context, mustExist);
  for (const [name, inner] of Object.entries(value)) {
    path.push(Array.isArray(value) ? Number(name) : name);
    walk(inner, path, context, mustExist);
    path.pop();
  }
}

function checkNames(config: Any, path: Path, context: CheckContext, mustExist: boolean): void {
  const { catalog, problems } = context;
  const extension = catalog.byTypeUrl(config['@type']);
  if (extension?.clusters === undefined) return;
  let names: (readonly [path: string, name: string | undefined])[];
  try {
    names = [...extension.clusters(config)];
  } catch (error) {
    // The extension relies on messages that obey the schema.
    if (problems.isDamaged(path, problems.errorCount)) return;
    return problems.error(path, describeDefect('clusters', extension.name, error));
  }
  for (const [inner, name] of names) checkClusterName(name, [...path, ...parsePath(inner)], context, mustExist);
}
