// Clusters that configurations of extensions name: where the extension says which they are, they must be there.

import { describeDefect } from '../../../common/errors/defects.js';
import type { Any } from '../../generated/api.js';
import { type Path, type PathPart, parsePath } from '../../text/path.js';
import type { Surroundings } from '../surroundings.js';
import { checkClusterName } from './cluster-name.js';

/** Looks for such configurations in `value`, which stands at `path`; with `mustExist` a cluster cannot come later. */
export function checkNamedClusters(value: unknown, path: Path, around: Surroundings, mustExist: boolean): void {
  walk(value, [...path], around, mustExist);
}

function walk(value: unknown, path: PathPart[], around: Surroundings, mustExist: boolean): void {
  if (typeof value !== 'object' || value === null) return;
  const { '@type': url } = value as { readonly '@type'?: unknown };
  if (typeof url === 'string') checkNames(value as Any, path, around, mustExist);
  for (const [name, held] of Object.entries(value)) {
    path.push(Array.isArray(value) ? Number(name) : name);
    walk(held, path, around, mustExist);
    path.pop();
  }
}

function checkNames(config: Any, path: Path, around: Surroundings, mustExist: boolean): void {
  const { catalog, problems } = around;
  const extension = catalog.byTypeUrl(config['@type']);
  if (extension?.clusters === undefined) return;
  let names: (readonly [path: string, name: string | undefined])[];
  try {
    names = [...extension.clusters(config)];
  } catch (error) {
    // It relies on messages that obey the schema.
    if (problems.isDamaged(path, problems.errorCount)) return;
    return problems.error(path, describeDefect('clusters', extension.name, error));
  }
  for (const [inner, name] of names) checkClusterName(name, [...path, ...parsePath(inner)], around, mustExist);
}
