// Tags of stats: parts of a dotted name that are extracted and named, or fixed values of all stats.

/** A tag and its value for one stat: `envoy.cluster_name`, `api`. */
export interface Tag {
  readonly name: string;
  readonly value: string;
}

/** A stat's name after tag extraction: `cluster.upstream_rq_total` for `cluster.api.upstream_rq_total`. */
export interface TaggedName {
  /** The full dotted name without the parts that the tags extracted. */
  readonly name: string;
  /** In the order of extraction. */
  readonly tags: readonly Tag[];
}
