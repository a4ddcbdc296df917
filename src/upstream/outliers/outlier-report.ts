// What threads that use hosts tell the primary: a host has failed so often in a row that it is an outlier.

import type { OutlierKind } from './outlier-kind.js';

/** Name of the port between the primary and the workers. */
export const OUTLIER_PORT = 'baton.outlier_detection';

export interface OutlierReport {
  readonly cluster: string;
  /** Of the cluster's version that has counted: others may have other limits. */
  readonly specVersion: number;
  /** The host's first shared word. */
  readonly block: number;
  readonly kind: OutlierKind;
}
