// Reads the environment variables by which a service manager, or baton-restarter, requests notifications (sd_notify(3)).

import { MAX_TIMER_MS } from '../../common/time/max-timer.js';
import { AddressKind, encodeAddress } from '../addresses/address.js';

/**
 * Returns the raw sockaddr in NOTIFY_SOCKET; undefined if it is not set. Throws an Error for a value that is neither a path nor '@name', or
 * is too long.
 */
export function notifyAddress(env: NodeJS.ProcessEnv): Uint8Array | undefined {
  const { NOTIFY_SOCKET: path = '' } = env;
  if (path === '') return undefined;
  if (!path.startsWith('/') && !path.startsWith('@')) {
    throw new Error(`NOTIFY_SOCKET=${path} is neither a path nor an abstract name`);
  }
  return encodeAddress({ kind: AddressKind.Unix, ip: '', port: 0, path });
}

/**
 * Returns the watchdog interval in milliseconds, capped at the longest timer; undefined if there is no watchdog (sd_watchdog_enabled(3)).
 */
export function watchdogIntervalMs(env: NodeJS.ProcessEnv): number | undefined {
  const { WATCHDOG_USEC: usec = '', WATCHDOG_PID: pid } = env;
  if (!/^[1-9]\d*$/.test(usec) || (pid !== undefined && pid !== String(process.pid))) return undefined;
  return Math.min(Number(usec) / 1000, MAX_TIMER_MS);
}
