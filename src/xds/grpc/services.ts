// The discovery services: which method of which service a stream is of, and the type URLs on it.

import { RESOURCE_MESSAGES, type ResourceType } from '../resource.js';

/** The service of each kind of resources, and what the names of its methods end with. */
const SERVICES: { readonly [type in ResourceType]: readonly [service: string, resources: string] } = {
  listener: ['listener.v3.ListenerDiscoveryService', 'Listeners'],
  cluster: ['cluster.v3.ClusterDiscoveryService', 'Clusters'],
  endpoints: ['endpoint.v3.EndpointDiscoveryService', 'Endpoints'],
  route: ['route.v3.RouteDiscoveryService', 'Routes'],
  'scoped-route': ['route.v3.ScopedRoutesDiscoveryService', 'ScopedRoutes'],
  // Exists as delta only.
  'virtual-host': ['route.v3.VirtualHostDiscoveryService', 'VirtualHosts'],
  runtime: ['runtime.v3.RuntimeDiscoveryService', 'Runtime'],
  'extension-config': ['extension.v3.ExtensionConfigDiscoveryService', 'ExtensionConfigs'],
};

/** The method of a stream for one kind of resources, or of the aggregated stream for all of them. */
export function methodOf(type: ResourceType | 'all', isDelta: boolean): string {
  const [service, resources] =
    type === 'all' ? ['discovery.v3.AggregatedDiscoveryService', 'AggregatedResources'] : SERVICES[type];
  return `/envoy.service.${service}/${isDelta ? 'Delta' : 'Stream'}${resources}`;
}

export function typeUrlOf(type: ResourceType): string {
  return `type.googleapis.com/${RESOURCE_MESSAGES[type]}`;
}
