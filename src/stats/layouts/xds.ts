// Stats of configuration subscriptions and of management servers.

import { defineLayout } from '../layout.js';

/** Scope of a subscription: `listener_manager.lds.`, `http.<stat_prefix>.rds.<name>.` … */
export const SubscriptionStats = defineLayout({
  init_fetch_timeout: 'counter',
  update_attempt: 'counter',
  update_failure: 'counter',
  update_rejected: 'counter',
  update_success: 'counter',
  /** Time of the last accepted update, in milliseconds since 1970. */
  update_time: 'own_gauge',
  /** The xxHash64 of the version. */
  version: 'own_gauge',
  update_duration: 'histogram',
  version_text: 'text',
});

/** Scope `cluster.<name>.`, for endpoint subscriptions: what ClusterStats does not contain. */
export const EndpointSubscriptionStats = defineLayout({
  init_fetch_timeout: 'counter',
  update_rejected: 'counter',
  update_time: 'own_gauge',
  update_duration: 'histogram',
  version_text: 'text',
});

/** In addition to SubscriptionStats, where one resource replaces another in use: routes, scopes. */
export const ReloadStats = defineLayout({
  config_reload: 'counter',
  /** Milliseconds since 1970. */
  config_reload_time_ms: 'own_gauge',
});

/** In addition to ReloadStats, for routes. */
export const RouteUpdateStats = defineLayout({
  /** Updates without routes of this name, such as those of a file with other routes. */
  update_empty: 'counter',
});

/** In addition to ReloadStats, where requests wait for virtual hosts requested on demand. */
export const AwaitedHostStats = defineLayout({
  /** Too many hosts were requested at the same time: the oldest request counted as missing. */
  hosts_overflow: 'counter',
  /** Too many requests waited in a worker: the oldest one continued without its host. */
  requests_overflow: 'counter',
});

/** In addition to SubscriptionStats, where requests wait for clusters requested on demand. */
export const OnDemandClusterStats = defineLayout({
  /** A cluster was not requested, because there are too many. */
  clusters_overflow: 'counter',
  /** Too many requests waited in a worker: the oldest one continued without its cluster. */
  requests_overflow: 'counter',
});

/** In addition to SubscriptionStats, for a discovered filter configuration. */
export const ExtensionConfigStats = defineLayout({
  config_reload: 'counter',
  config_fail: 'counter',
  /** A chain names the filter but cannot use the delivered configuration. */
  config_conflict: 'counter',
});

/** Scope `http.<stat_prefix>.scoped_rds.<name>.`, in addition to ReloadStats. Scopes are never loaded on demand. */
export const ScopedRoutesStats = defineLayout({
  all_scopes: 'own_gauge',
  active_scopes: 'own_gauge',
  on_demand_scopes: 'own_gauge',
  update_empty: 'counter',
});

/** Scope `control_plane.` for the aggregated stream; below a subscription's prefix for a stream of its own. */
export const ControlPlaneStats = defineLayout({
  rate_limit_enforced: 'counter',
  connected_state: 'own_gauge',
  pending_requests: 'own_gauge',
  identifier: 'text',
});
