// What the tags of a stat are: parts of its dotted name, taken out and named, or values that all stats have.

/** A tag and its value for one stat: `envoy.cluster_name`, `api`. */
export interface Tag {
  readonly name: string;
  readonly value: string;
}

/** A stat's name after tag extraction: `cluster.upstream_rq_total` of `cluster.api.upstream_rq_total`. */
export interface TaggedName {
  /** Full dotted name without what the tags took out. */
  readonly name: string;
  /** In the order in which they are extracted. */
  readonly tags: readonly Tag[];
}
