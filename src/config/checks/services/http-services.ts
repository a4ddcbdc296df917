// Services that Baton calls by HTTP: their cluster must be there, and be spoken to in HTTP/1.1.

import type { HttpService } from '../../generated/api.js';
import type { Path } from '../../text/path.js';
import { checkClusterName } from '../names/cluster-name.js';
import type { Surroundings } from '../surroundings.js';

/** Reports a service's cluster that does not exist, or that speaks HTTP/2. */
export function checkHttpCall(service: HttpService | undefined, path: Path, around: Surroundings): void {
  const name = service?.http_uri?.cluster;
  if (name === undefined) return;
  const at = [...path, 'http_uri', 'cluster'];
  if (!around.http2Clusters.has(name)) return checkClusterName(name, at, around);
  around.problems.error(at, `cluster '${name}' speaks HTTP/2: calls by HTTP are implemented for HTTP/1.1 only`);
}
