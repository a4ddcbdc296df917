// Virtual hosts that a route table does not have yet, and that can be asked for (VHDS).

/** A request that waits for its virtual host. */
export interface HostWaiter {
  /**
   * It is known whether it exists, and the table of the request's routes is up to date; or it has waited while too many others
   * began to. Called in a turn of its own.
   */
  hostSettled(): void;
}

export interface OnDemandHosts {
  /** `waiter` is told later, once. */
  ask(host: string, waiter: HostWaiter): void;
  /** The waiter is not told any more. */
  cancel(host: string, waiter: HostWaiter): void;
}

/** The virtual host that a request needs. */
export interface MissingHost {
  /** In lower case. */
  readonly host: string;
  readonly hosts: OnDemandHosts;
}
