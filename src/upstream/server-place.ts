// Where this server is, for load balancing that prefers near hosts; plain data.

import type { Bootstrap } from '../config/generated/api.js';
import { type Locality, localityOf } from './hosts/locality.js';

export interface ServerPlace {
  /** Undefined: node.locality is not set. */
  readonly locality: Locality | undefined;
  /** cluster_manager.local_cluster_name, the cluster of this server and its peers; '' when not set. */
  readonly localCluster: string;
}

export function serverPlace({ cluster_manager: manager, node }: Bootstrap): ServerPlace {
  return {
    locality: node?.locality && localityOf(node.locality),
    localCluster: manager?.local_cluster_name ?? '',
  };
}
