// The modules that a bootstrap registers, and the places of a configuration that name one.

import { resolve } from 'node:path';
import type { Any, Bootstrap } from '../generated/api.js';
import { unpack } from '../schema/any.js';
import { formatPath, type Path, type PathPart } from '../text/path.js';

const SCRIPTS = 'baton.scripts.v1.Scripts';
const FILTER = 'baton.filters.http.script.v1.Script';

/** A registered module. Exactly one of `filename` (absolute) and `packageName` is set. */
export interface RegisteredScript {
  readonly name: string;
  readonly filename: string | undefined;
  readonly packageName: string | undefined;
  readonly isWatched: boolean;
}

/** A place that names a module. */
export interface NamedScript {
  readonly module: string;
  readonly config: unknown;
  readonly path: Path;
}

/** Returns the modules in the order in which they are registered. */
export function registeredScripts(bootstrap: Bootstrap): RegisteredScript[] {
  return scriptMessages(bootstrap).flatMap(({ modules = {} }) =>
    Object.entries(modules).map(([name, module]) => ({
      name,
      filename: module?.filename ? resolve(module.filename) : undefined,
      packageName: module?.package || undefined,
      isWatched: module?.watch ?? false,
    })),
  );
}

function scriptMessages({ bootstrap_extensions: extensions = [] }: Bootstrap) {
  return extensions.flatMap((extension) => unpack(extension?.typed_config, SCRIPTS) ?? []);
}

/** Returns all places in a part of a configuration, which stands at `path`. */
export function namedScripts(value: unknown, path: Path = []): NamedScript[] {
  const found: NamedScript[] = [];
  walk(value, [...path], found);
  return found;
}

function walk(value: unknown, path: PathPart[], found: NamedScript[]): void {
  if (typeof value !== 'object' || value === null) return;
  if (typeof (value as { readonly '@type'?: unknown })['@type'] === 'string') {
    const filter = unpack(value as Any, FILTER);
    if (filter !== undefined) found.push({ module: filter.module ?? '', config: filter.config, path: [...path] });
  }
  for (const [name, inner] of Object.entries(value)) {
    path.push(Array.isArray(value) ? Number(name) : name);
    walk(inner, path, found);
    path.pop();
  }
}

/** Returns where a place is, for messages. */
export function placeOf({ path }: NamedScript): string {
  return formatPath(path);
}
