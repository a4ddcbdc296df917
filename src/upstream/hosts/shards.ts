// The shards of a Redis cluster: which hosts have the keys of which slots. Plain data.

/** The number of slots, which never changes. */
export const SLOTS = 16_384;

/** `H` names a host: its key (keyOf()), or its index in a host set. */
export interface Shards<H> {
  /** Three numbers for each range of slots: the first slot, the last one, and the index of their shard. */
  readonly ranges: readonly number[];
  /** The hosts of each shard: the primary first, and its replicas. */
  readonly hosts: readonly (readonly H[])[];
}
