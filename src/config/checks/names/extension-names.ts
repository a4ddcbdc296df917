// Clusters and generic secrets that configurations of extensions reference: they must exist.

import { describeDefect } from '../../../common/errors/defects.js';
import { shownName } from '../../../common/text/shown.js';
import { didYouMean } from '../../../common/text/suggest.js';
import type { Any, SdsSecretConfig } from '../../generated/api.js';
import { type Path, type PathPart, parsePath } from '../../text/path.js';
import type { CheckContext } from '../check-context.js';
import { checkClusterName } from './cluster-name.js';

/** Searches `value`, which stands at `path`, for configurations of extensions. `mustExist`: clusters cannot be added later. */
export function checkExtensionNames(value: unknown, path: Path, context: CheckContext, mustExist: boolean): void {
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
  if (extension === undefined) return;
  const listed = <T>(what: 'clusters' | 'secrets', list: () => Iterable<T> | undefined): T[] => {
    try {
      return [...(list() ?? [])];
    } catch (error) {
      // The extension relies on messages that obey the schema.
      if (!problems.isDamaged(path, problems.errorCount))
        problems.error(path, describeDefect(what, extension.name, error));
      return [];
    }
  };
  for (const [inner, name] of listed('clusters', () => extension.clusters?.(config)))
    checkClusterName(name, [...path, ...parsePath(inner)], context, mustExist);
  for (const secret of listed('secrets', () => extension.secrets?.(config)))
    checkSecret(secret, placeOf(secret, config, path) ?? path, context);
}

/** Sources are contacted only later. */
function checkSecret({ name = '', sds_config: source }: SdsSecretConfig, path: Path, context: CheckContext): void {
  const { problems, secrets } = context;
  if (source !== undefined || secrets === undefined || secrets.has(name)) return;
  const what = `static_resources.secrets has no generic_secret '${shownName(name)}'`;
  problems.error(path, () => what + didYouMean(name, secrets));
}

/** Returns the path of the message `part` within `value`. */
function placeOf(part: object, value: unknown, path: Path): Path | undefined {
  if (value === part) return path;
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [name, inner] of Object.entries(value)) {
    const found = placeOf(part, inner, [...path, Array.isArray(value) ? Number(name) : name]);
    if (found !== undefined) return found;
  }
  return undefined;
}
