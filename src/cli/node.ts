// The node that identifies this server, with what the command line overrides.

import type { Node } from '../config/generated/api.js';

export interface NodeOverrides {
  readonly serviceCluster: string;
  readonly serviceNode: string;
  readonly serviceZone: string;
}

/** The bootstrap's node with --service-cluster, --service-node and --service-zone in place of its own values. */
export function overrideNode(node: Node | undefined, overrides: NodeOverrides): Node {
  const { serviceCluster, serviceNode, serviceZone } = overrides;
  return {
    ...node,
    ...(serviceNode !== '' && { id: serviceNode }),
    ...(serviceCluster !== '' && { cluster: serviceCluster }),
    ...(serviceZone !== '' && { locality: { ...node?.locality, zone: serviceZone } }),
  };
}
