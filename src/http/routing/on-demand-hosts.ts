// Virtual hosts that a route table does not have yet, and that can be asked for (VHDS).

/** A request that waits for its virtual host. */
export interface HostWaiter {
  /** It is known whether it exists: the table of the request's routes is up to date. Called in a turn of its own. */
  hostSettled(): void;
}

export interface OnDemandHosts {
  /** `waiter` is told later, once. Returns false when too many wait: it is not told then. */
  ask(host: string, waiter: HostWaiter): boolean;
  /** The waiter is not told any more. */
  cancel(host: string, waiter: HostWaiter): void;
}

/** The virtual host that a request needs. */
export interface MissingHost {
  /** In lower case. */
  readonly host: string;
  readonly hosts: OnDemandHosts;
}
