// The discovery services: the gRPC method of a stream, and its type URLs.

import { RESOURCE_MESSAGES, type ResourceType } from '../resource.js';

/** The service of each resource type, and the suffix of its method names. */
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
  secret: ['secret.v3.SecretDiscoveryService', 'Secrets'],
};

/** Returns the method of a stream for one type, or of the aggregated stream. */
export function methodOf(type: ResourceType | 'all', isDelta: boolean): string {
  const [service, resources] =
    type === 'all' ? ['discovery.v3.AggregatedDiscoveryService', 'AggregatedResources'] : SERVICES[type];
  return `/envoy.service.${service}/${isDelta ? 'Delta' : 'Stream'}${resources}`;
}

export function typeUrlOf(type: ResourceType): string {
  return `type.googleapis.com/${RESOURCE_MESSAGES[type]}`;
}
