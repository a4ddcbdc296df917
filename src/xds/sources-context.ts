// The server context of subscriptions.

import type { Bootstrap, Node } from '../config/generated/api.js';
import type { LoadCounts } from '../config/load/load.js';
import type { StatsStore } from '../stats/store.js';
import type { CallingThread } from '../upstream/calling-thread.js';
import type { DynamicOptions } from './reading/settings.js';
import type { Resource, ResourceType } from './resource.js';

export interface SourcesContext {
  /** Returns the current bootstrap, with the node as changed by the command line. */
  bootstrap(): Bootstrap;
  /** The node that is sent to management servers. */
  readonly node: Node;
  readonly store: StatsStore;
  /** For gRPC calls to management servers. */
  readonly calls: CallingThread;
  readonly dynamic: DynamicOptions;
  /** Called with the counts from reading resources. */
  readonly counted: (counts: LoadCounts) => void;
  /** Called with resources that were read, before they are delivered: what must be known when they are checked. Does not reject. */
  readonly prepare: (type: ResourceType, resources: readonly Resource[]) => Promise<void>;
  /** Reports an unexpected exception that was caught. */
  readonly failed: (what: string, error: unknown) => void;
}
