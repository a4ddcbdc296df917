// Virtual hosts that a route table does not have yet and that can be requested (VHDS).

/** A request that waits for its virtual host. */
export interface HostWaiter {
  /**
   * Called in a turn of its own when the source has answered and the route table is up to date, or when the waiter is evicted because too
   * many wait.
   */
  hostSettled(): void;
}

export interface OnDemandHosts {
  /** Requests a virtual host. Calls `waiter` once, later. */
  request(host: string, waiter: HostWaiter): void;
  /** Cancels the request of `waiter`, which is not called any more. */
  cancel(host: string, waiter: HostWaiter): void;
}

/** The virtual host that a request needs. */
export interface MissingHost {
  /** In lower case. */
  readonly host: string;
  readonly hosts: OnDemandHosts;
}
