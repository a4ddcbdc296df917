// Stats of subscriptions to configuration, and of the management servers that it comes from.

import { defineLayout } from '../layout.js';

/** Scope of a subscription: `listener_manager.lds.`, `http.<stat_prefix>.rds.<name>.` … */
export const SubscriptionStats = defineLayout({
  init_fetch_timeout: 'counter',
  update_attempt: 'counter',
  update_failure: 'counter',
  update_rejected: 'counter',
  update_success: 'counter',
  /** Milliseconds since 1970 of the last update that was accepted. */
  update_time: 'own_gauge',
  /** A hash of its version: equal numbers, equal versions. */
  version: 'own_gauge',
  update_duration: 'histogram',
  version_text: 'text',
});

/** Scope `cluster.<name>.`: of endpoints, what ClusterStats does not have already. */
export const EndpointSubscriptionStats = defineLayout({
  init_fetch_timeout: 'counter',
  update_rejected: 'counter',
  update_time: 'own_gauge',
  update_duration: 'histogram',
  version_text: 'text',
});

/** Beside SubscriptionStats, where one resource replaces another while it is used: routes, scopes. */
export const ReloadStats = defineLayout({
  config_reload: 'counter',
  /** Milliseconds since 1970. */
  config_reload_time_ms: 'own_gauge',
});

/** Beside ReloadStats, of routes. */
export const RouteUpdateStats = defineLayout({
  /** Updates that had no routes of the name, as of a file that has others. */
  update_empty: 'counter',
});

/** Beside ReloadStats, where requests wait for virtual hosts that the source is asked for. */
export const AwaitedHostStats = defineLayout({
  /** Too many hosts were asked for at one time: the oldest one counted as missing. */
  hosts_overflow: 'counter',
  /** Too many requests waited in a worker: the one that had waited longest went on without its host. */
  requests_overflow: 'counter',
});

/** Beside SubscriptionStats, of a discovered configuration of a filter. */
export const ExtensionConfigStats = defineLayout({
  config_reload: 'counter',
  config_fail: 'counter',
  /** A chain names the filter, and cannot use what there is. */
  config_conflict: 'counter',
});

/** Scope `http.<stat_prefix>.scoped_rds.<name>.`, beside ReloadStats. No scope waits for a request. */
export const ScopedRoutesStats = defineLayout({
  all_scopes: 'own_gauge',
  active_scopes: 'own_gauge',
  on_demand_scopes: 'own_gauge',
});

/** Scope `control_plane.` for the aggregated stream; below a subscription's own prefix for a stream of its own. */
export const ControlPlaneStats = defineLayout({
  rate_limit_enforced: 'counter',
  connected_state: 'own_gauge',
  pending_requests: 'own_gauge',
  identifier: 'text',
});
