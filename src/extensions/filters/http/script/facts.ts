// Facts of a request as modules see them.

import type { Metadata, RouteFacts } from '../../../../api/index.js';
import type { Route, StreamInfo, Struct } from '../../../sdk.js';

export function routeFacts(route: Route<unknown> | undefined): RouteFacts | undefined {
  if (route === undefined) return undefined;
  return {
    name: route.name,
    virtualHost: route.virtualHostName,
    cluster: route.clusterName,
    metadata: (route.metadata?.filter_metadata ?? {}) as RouteFacts['metadata'],
  };
}

/** ctx.metadata: the dynamic metadata of a request. */
export class StreamMetadata implements Metadata {
  readonly #info: StreamInfo;

  constructor(info: StreamInfo) {
    this.#info = info;
  }

  get(namespace: string): Readonly<Record<string, unknown>> | undefined {
    return this.#info.dynamicMetadata?.get(namespace);
  }

  set(namespace: string, values: Readonly<Record<string, unknown>>): void {
    // A copy: logs print it later. Refuses what is not plain data.
    this.#info.ownDynamicMetadata().merge(namespace, JSON.parse(JSON.stringify(values)) as Struct);
  }
}
