// Services that Baton calls over HTTP: their cluster must exist.

import type { HttpService } from '../../generated/api.js';
import type { Path } from '../../text/path.js';
import type { CheckContext } from '../check-context.js';
import { checkClusterName } from '../names/cluster-name.js';

/** Reports a cluster of a service that does not exist. */
export function checkHttpCall(service: HttpService | undefined, path: Path, context: CheckContext): void {
  const name = service?.http_uri?.cluster;
  if (name !== undefined) checkClusterName(name, [...path, 'http_uri', 'cluster'], context);
}
