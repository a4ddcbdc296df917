// Implemented fields of dynamic configuration sources and of the messages that they send.

import { accepted, byValue, type ImplementedTable, notImplemented, obeyed, refused } from './table.js';

/** For fields that name a collection whose members are requested one by one. */
export const NO_LOCATORS = 'name the source of single resources instead of a collection';
/** For sources that authorities of names determine. */
export const NO_AUTHORITIES = 'the authorities of xdstp names determine no source: name the source next to each name';

export const CONFIG_SOURCE: ImplementedTable = {
  'envoy.config.bootstrap.v3.Bootstrap.DynamicResources': {
    lds_config: true,
    cds_config: true,
    ads_config: true,
    lds_resources_locator: true,
    cds_resources_locator: true,
  },
  'envoy.config.core.v3.ConfigSource': {
    path: true,
    path_config_source: true,
    api_config_source: true,
    ads: true,
    self: refused("Envoy has no such source either: name the source, such as 'ads: {}'"),
    initial_fetch_timeout: true,
    resource_api_version: accepted('resources are always those of V3'),
    authorities: refused(NO_AUTHORITIES),
  },
  'envoy.config.core.v3.PathConfigSource': {
    path: true,
    watched_directory: true,
    poll_interval: true,
  },
  'envoy.config.core.v3.WatchedDirectory': {
    path: true,
    watch_modify: true,
  },
  'envoy.config.core.v3.ApiConfigSource': {
    api_type: byValue({
      DEPRECATED_AND_UNAVAILABLE_DO_NOT_USE: false,
      REST: true,
      GRPC: true,
      DELTA_GRPC: true,
      AGGREGATED_GRPC: false,
      AGGREGATED_DELTA_GRPC: false,
    }),
    transport_api_version: byValue({ AUTO: true, V2: false, V3: true }),
    grpc_services: true,
    set_node_on_first_message_only: true,
    rate_limit_settings: true,
    cluster_names: true,
    refresh_delay: true,
    request_timeout: true,
    ...notImplemented('config_validators'),
  },
  'envoy.config.core.v3.RateLimitSettings': obeyed('max_tokens', 'fill_rate'),
  'envoy.service.discovery.v3.DiscoveryResponse': {
    version_info: true,
    resources: true,
    type_url: accepted("each resource has its own '@type'"),
    nonce: accepted('it distinguishes responses of a stream'),
    canary: accepted('it is informational'),
    control_plane: accepted('it is informational'),
    resource_errors: refused('a file lists only resources that exist'),
  },
  'envoy.config.core.v3.ControlPlane': obeyed('identifier'),
  'envoy.service.discovery.v3.Resource': {
    name: true,
    aliases: true,
    version: true,
    resource: true,
    ttl: true,
    cache_control: accepted('it is for caches between Baton and the server'),
    metadata: accepted('it is for caches between Baton and the server'),
    ...notImplemented('resource_name'),
  },
  'envoy.service.discovery.v3.Resource.CacheControl': {
    do_not_cache: accepted('it is for caches between Baton and the server'),
  },
};
