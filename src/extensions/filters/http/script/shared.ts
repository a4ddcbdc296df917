// What the requests of a filter in one chain share, on one worker.

import type { SharedByStreams } from '../../../script/shared.js';
import type { Memory } from '../../../sdk.js';

export interface SharedByRequests extends SharedByStreams {
  readonly memory: Pick<Memory, 'bytes'>;
  /** Returns an existing cluster. */
  findCluster(name: string): { readonly name: string } | undefined;
}
