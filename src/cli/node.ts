// The node that identifies this server, with the overrides of the command line.

import type { Node } from '../config/generated/api.js';

export interface NodeOverrides {
  readonly serviceCluster: string;
  readonly serviceNode: string;
  readonly serviceZone: string;
}

/** Returns the bootstrap's node with the values of --service-cluster, --service-node and --service-zone where they are given. */
export function overrideNode(node: Node | undefined, overrides: NodeOverrides): Node {
  const { serviceCluster, serviceNode, serviceZone } = overrides;
  return {
    ...node,
    ...(serviceNode !== '' && { id: serviceNode }),
    ...(serviceCluster !== '' && { cluster: serviceCluster }),
    ...(serviceZone !== '' && { locality: { ...node?.locality, zone: serviceZone } }),
  };
}
