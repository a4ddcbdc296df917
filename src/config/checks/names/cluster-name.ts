// References to clusters: the cluster must exist, unless it may be added later, and accept traffic.

import { didYouMean } from '../../../common/text/suggest.js';
import type { Path } from '../../text/path.js';
import type { CheckContext } from '../check-context.js';

/** Reports a missing cluster, if it must exist, and a cluster that cannot receive traffic. */
export function checkClusterName(
  name: string | undefined,
  path: Path,
  { clusters, http2Clusters, problems }: CheckContext,
  mustExist = true,
): void {
  if (name !== undefined && http2Clusters.has(name)) {
    const why = `cluster '${name}' speaks HTTP/2, which is implemented for Baton's own gRPC calls only`;
    problems.error(path, `${why}: leave http2_protocol_options out of it if its hosts speak HTTP/1.1 too`);
  }
  if (!mustExist || name === undefined || name === '' || clusters === undefined || clusters.has(name)) return;
  problems.error(path, () => `unknown cluster '${name}'${didYouMean(name, clusters)}`);
}
