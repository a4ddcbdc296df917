// transport_socket_matches of a cluster: which transport socket the connections to an endpoint use.

import { isDeepStrictEqual } from 'node:util';
import type { Cluster_TransportSocketMatch, Metadata, Struct } from '../../config/generated/api.js';

/** The transport socket of endpoints that no match selects: the cluster's own. */
export const OWN_TRANSPORT = 0;

export class TransportMatches {
  readonly #labels: readonly Struct[];

  constructor(matches: readonly Cluster_TransportSocketMatch[] = []) {
    this.#labels = matches.map(({ match = {} }) => match);
  }

  /**
   * Returns the number of the match that selects the transport socket of an endpoint, 1 for the first, or OWN_TRANSPORT. As in Envoy, any
   * match by the endpoint's own metadata precedes those by its locality's.
   */
  numberOf(endpoint: Metadata | undefined, locality: Metadata | undefined): number {
    if (this.#labels.length === 0) return OWN_TRANSPORT;
    return this.numberOfLabels(labelsOf(endpoint)) || this.numberOfLabels(labelsOf(locality));
  }

  /** Returns the same for labels. Undefined: none, which only a match without labels selects. */
  numberOfLabels(labels: Struct | undefined): number {
    return 1 + this.#labels.findIndex((wanted) => includes(labels, wanted));
  }
}

function labelsOf(metadata: Metadata | undefined): Struct | undefined {
  return metadata?.filter_metadata?.['envoy.transport_socket_match'];
}

function includes(labels: Struct | undefined, wanted: Struct): boolean {
  return Object.entries(wanted).every(([key, value]) => labels !== undefined && isDeepStrictEqual(labels[key], value));
}
