// A thread's report to the primary: a host has reached a limit of consecutive failures.

import type { OutlierKind } from './outlier-kind.js';

/** Name of the port between the primary and the workers. */
export const OUTLIER_PORT = 'baton.outlier_detection';

export interface OutlierReport {
  readonly cluster: string;
  /** The version of the cluster that counted: other versions may have other limits. */
  readonly specVersion: number;
  /** Index of the host's first shared word. */
  readonly block: number;
  readonly kind: OutlierKind;
}
