// References to clusters: the cluster must exist, unless it may be added later.

import { didYouMean } from '../../../common/text/suggest.js';
import type { Path } from '../../text/path.js';
import type { CheckContext } from '../check-context.js';

/** Reports a missing cluster, if it must exist. */
export function checkClusterName(
  name: string | undefined,
  path: Path,
  { clusters, problems }: CheckContext,
  mustExist = true,
): void {
  if (!mustExist || name === undefined || name === '' || clusters === undefined || clusters.has(name)) return;
  problems.error(path, () => `unknown cluster '${name}'${didYouMean(name, clusters)}`);
}
