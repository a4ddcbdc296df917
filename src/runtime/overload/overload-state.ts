// What the primary publishes of the overload manager, and what a worker is started with. Plain data.

/** The port between the overload manager and the workers. */
export const OVERLOAD_PORT = 'baton.overload';

/** Values from 0 (inactive) to 1 (saturated) by name, of those that are not 0. */
export type OverloadState = Readonly<Record<string, number>>;

/** A timeout at saturation: a time, or a fraction of the configured one. */
export type TimeoutMinimum = { readonly ms: number } | { readonly scale: number };

/** Timeouts that the action reduce_timeouts can make shorter. */
export type TimerType =
  | 'HTTP_DOWNSTREAM_CONNECTION_IDLE'
  | 'HTTP_DOWNSTREAM_STREAM_IDLE'
  | 'TRANSPORT_SOCKET_CONNECT'
  | 'HTTP_DOWNSTREAM_CONNECTION_MAX';

/** The configuration of the overload manager for workers. */
export interface OverloadSpec {
  /** The names of the load shed points. */
  readonly points: readonly string[];
  readonly timers: Readonly<Partial<Record<TimerType, TimeoutMinimum>>>;
}
