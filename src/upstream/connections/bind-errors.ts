// Connections that could not be made because of the address that they were to be made from.

import { constants } from 'node:os';
import { ClusterStats } from '../../stats/layouts/cluster.js';
import type { Scope } from '../../stats/thread-stats.js';
import type { ClusterSpec } from '../cluster-config.js';

const { EACCES, EADDRINUSE, EADDRNOTAVAIL, EAFNOSUPPORT, EINVAL } = constants.errno;

/** The last two: the address is of another family than the host's, or one from which no way leads there. */
const BIND_ERRORS: readonly number[] = [EADDRNOTAVAIL, EADDRINUSE, EACCES, EAFNOSUPPORT, EINVAL];

/** Counts a failed connect as bind_errors when upstream_bind_config names an address that this machine cannot use. */
export function countBindError(cluster: { readonly spec: ClusterSpec; readonly stats: Scope }, errno: number): void {
  if (cluster.spec.sourceAddress === undefined) return;
  if (!BIND_ERRORS.includes(errno)) return;
  cluster.stats.increment(ClusterStats.at.bind_errors);
}
