// Services that Baton calls over HTTP: their cluster must exist and use HTTP/1.1.

import type { HttpService } from '../../generated/api.js';
import type { Path } from '../../text/path.js';
import type { CheckContext } from '../check-context.js';
import { checkClusterName } from '../names/cluster-name.js';

/** Reports a cluster of a service that does not exist or uses HTTP/2. */
export function checkHttpCall(service: HttpService | undefined, path: Path, context: CheckContext): void {
  const name = service?.http_uri?.cluster;
  if (name === undefined) return;
  const at = [...path, 'http_uri', 'cluster'];
  if (!context.http2Clusters.has(name)) return checkClusterName(name, at, context);
  context.problems.error(at, `cluster '${name}' speaks HTTP/2: HTTP services are implemented for HTTP/1.1 only`);
}
