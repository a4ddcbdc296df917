// The name of a cluster: it must be there, unless it may come later, and be one that traffic can go to.

import { didYouMean } from '../../../common/text/suggest.js';
import type { Path } from '../../text/path.js';
import type { Surroundings } from '../surroundings.js';

/** Reports a cluster that no cluster has as its name, if it has to exist, or that traffic cannot go to. */
export function checkClusterName(
  name: string | undefined,
  path: Path,
  { clusters, http2Clusters, problems }: Surroundings,
  mustExist = true,
): void {
  if (name !== undefined && http2Clusters.has(name)) {
    const why = `cluster '${name}' speaks HTTP/2, which is implemented for gRPC calls of Baton's own only`;
    problems.error(path, `${why}: leave http2_protocol_options out of it if its hosts speak HTTP/1.1 too`);
  }
  if (!mustExist || name === undefined || name === '' || clusters === undefined || clusters.has(name)) return;
  problems.error(path, () => `unknown cluster '${name}'${didYouMean(name, clusters)}`);
}
