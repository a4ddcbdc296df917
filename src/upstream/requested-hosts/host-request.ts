// The messages about hosts that requests name, between threads and the primary, which adds these hosts to their cluster.

/** Name of the port between the primary and the workers. */
export const REQUESTED_HOSTS_PORT = 'baton.requested_hosts';

/** A thread's request for a host of a cluster. Answered by a snapshot with the host, or by a refusal. */
export interface HostRequest {
  readonly cluster: string;
  /** The version of the cluster that requests it. */
  readonly specVersion: number;
  /** Identifies the host in its cluster. */
  readonly key: string;
}

/** The primary's message to all threads that a cluster does not get a requested host. */
export interface HostRefusal extends HostRequest {
  /** For %RESPONSE_CODE_DETAILS%. */
  readonly details: string;
}
