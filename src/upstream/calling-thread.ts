// A thread that calls hosts of clusters itself: the primary, or a worker for its extensions.

import type { ClusterReference } from './cluster-manager.js';
import type { UpstreamThread } from './upstream-thread.js';

export interface CallingThread {
  /** A turn begins: called before the thread is used outside its events, where time stands still. */
  begin(): UpstreamThread;
  /** The cluster of that name, whether it exists or not. */
  reference(cluster: string): ClusterReference;
}
