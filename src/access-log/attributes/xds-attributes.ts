// upstream.* and xds.* attributes, metadata and filter state.

import { CelMap, type CelMessage, type CelValue, textOf } from '../../cel/values.js';
import { byteText } from '../../common/text/byte-text.js';
import type { Locality, Metadata, Struct } from '../../config/generated/api.js';
import type { StreamInfo } from '../stream/stream-info.js';
import { localNode } from './local-node.js';
import { localityMessage, metadataMessage } from './messages.js';
import { type Attributes, addressAttributes, between, nonEmpty, securityAttributes } from './request-attributes.js';

export const UPSTREAM: Attributes = {
  ...addressAttributes((info) => info.upstreamHost),
  local_address: ({ upstreamLocalAddress }) => nonEmpty(upstreamLocalAddress),
  transport_failure_reason: ({ host, upstreamTransportFailureReason: reason }) => host && byteText(reason),
  request_attempt_count: ({ attemptCount }) => BigInt(attemptCount),
  cx_pool_ready_duration: ({ poolReadyMs, tryStartMs }) => between(tryStartMs, poolReadyMs),
  locality: ({ host }) => host && localityMessage(localityConfig(host.locality ?? NOWHERE)),
  ...securityAttributes((info) => info.upstreamSecurity),
};

export const XDS: Attributes = {
  node: localNode,
  cluster_name: ({ upstreamCluster }) => upstreamCluster && byteText(upstreamCluster.name),
  cluster_metadata: ({ upstreamCluster }) => upstreamCluster && metadataMessage(upstreamCluster.metadata),
  route_name: ({ route, routeName }) => route && byteText(routeName),
  route_metadata: ({ route }) => route && metadataMessage(route.metadata),
  virtual_host_name: ({ virtualHostName }) => nonEmpty(byteText(virtualHostName)),
  virtual_host_metadata: ({ route }) => route && metadataMessage(route.virtualHostMetadata),
  upstream_host_metadata: ({ host }) => host && metadataMessage(host.metadata),
  upstream_host_locality_metadata: ({ host }) => host?.localityMetadata && metadataMessage(host.localityMetadata),
  filter_chain_name: ({ chain }) => chain && byteText(chain.filterChainName),
  listener_metadata: ({ chain }) => chain && metadataMessage(chain.listenerMetadata),
  listener_direction: ({ chain }) => chain && BigInt(chain.direction ?? 0),
};

const NOWHERE = { region: '', subZone: '', zone: '' };

function localityConfig({ region, subZone, zone }: { region: string; subZone: string; zone: string }): Locality {
  return {
    ...(region !== '' && { region }),
    ...(zone !== '' && { zone }),
    ...(subZone !== '' && { sub_zone: subZone }),
  };
}

/** The dynamic metadata of the stream, as a message. */
export function streamMetadata({ dynamicMetadata }: StreamInfo): CelMessage {
  if (dynamicMetadata === undefined) return metadataMessage(undefined);
  const namespaces: Record<string, Struct> = { __proto__: null } as unknown as Record<string, Struct>;
  for (const [name, value] of dynamicMetadata.entries()) namespaces[name] = value;
  return metadataMessage({ filter_metadata: namespaces } as Metadata);
}

/** filter_state and upstream_filter_state: objects by their keys, as bytes. As in Envoy, they cannot be listed. */
export class FilterStateMap extends CelMap {
  readonly size = 0;
  readonly #info: StreamInfo;
  readonly #isUpstream: boolean;

  /** `isUpstream`: only the objects that the connection to the host has taken over. */
  constructor(info: StreamInfo, isUpstream: boolean) {
    super();
    this.#info = info;
    this.#isUpstream = isUpstream;
  }

  get(key: CelValue): CelValue | undefined {
    if (typeof key !== 'string') return undefined;
    const object = this.#info.filterState?.get(textOf(key));
    if (object === undefined || (this.#isUpstream && object.sharing === 'NONE')) return undefined;
    return new Uint8Array(Buffer.from(object.text, 'latin1'));
  }

  has(key: CelValue): boolean {
    return this.get(key) !== undefined;
  }

  entries(): undefined {}
}
