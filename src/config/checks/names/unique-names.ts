// Names that must be unique.

import { formatPath, type Path } from '../../text/path.js';
import type { Problems } from '../../text/problems.js';

/** Reports each name that an earlier element has. Ignores empty names and names with another error. */
export function checkUnique(
  names: readonly (string | undefined)[],
  pathOf: (index: number) => Path,
  what: string,
  problems: Problems,
): void {
  const first = new Map<string, number>();
  names.forEach((name, index) => {
    if (name === undefined || name === '') return;
    const earlier = first.get(name);
    if (earlier === undefined) first.set(name, index);
    else if (!problems.has(pathOf(index)))
      problems.error(pathOf(index), () => `duplicate ${what} '${name}': ${formatPath(pathOf(earlier))} is the same`);
  });
}
