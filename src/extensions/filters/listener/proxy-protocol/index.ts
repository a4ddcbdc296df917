// envoy.filters.listener.proxy_protocol: reads the client's address from the header that a proxy in front sends in the first
// bytes.

import type { ProxyProtocol, ProxyProtocolConfig_Version } from '../../../../config/generated/api.js';
import {
  byValue,
  type CounterSlot,
  defineLayout,
  type InspectedConnection,
  type ListenerFilter,
  type ListenerFilterExtension,
  refused,
  type Scope,
  Verdict,
} from '../../../sdk.js';
import { MAX_HEADER_BYTES, readHeader, type Version, versionOf } from './header.js';

const NO_TLV = 'TLVs are not kept';

const ProxyProtocolStats = defineLayout({
  not_found_disallowed: 'counter',
  not_found_allowed: 'counter',
  'versions.v1.found': 'counter',
  'versions.v1.disallowed': 'counter',
  'versions.v1.error': 'counter',
  'versions.v2.found': 'counter',
  'versions.v2.disallowed': 'counter',
  'versions.v2.error': 'counter',
});

/** Envoy's older counter of connections that are refused for their header, which has no prefix. */
const RefusalStats = defineLayout({
  downstream_cx_proxy_proto_error: 'counter',
});

const VERSIONS: readonly Version[] = [1, 2];

export const proxyProtocol: ListenerFilterExtension<ProxyProtocol> = {
  category: 'envoy.filters.listener',
  name: 'envoy.filters.listener.proxy_protocol',
  typeUrls: ['type.googleapis.com/envoy.extensions.filters.listener.proxy_protocol.v3.ProxyProtocol'],
  implemented: {
    'envoy.extensions.filters.listener.proxy_protocol.v3.ProxyProtocol': {
      allow_requests_without_proxy_protocol: true,
      disallowed_versions: byValue({ V1: true, V2: true }),
      stat_prefix: true,
      rules: refused(NO_TLV),
      pass_through_tlvs: refused(NO_TLV),
      tlv_location: refused(NO_TLV),
    },
  },
  scopes: (config) => [
    { prefix: prefixOf(config), layout: ProxyProtocolStats },
    { prefix: '', layout: RefusalStats },
  ],
  createOnWorker: (config, context) =>
    new ProxyProtocolFilter(
      config,
      context.scope(prefixOf(config), ProxyProtocolStats),
      context.scope('', RefusalStats),
    ),
};

function prefixOf({ stat_prefix: own }: ProxyProtocol): string {
  return own ? `proxy_proto.${own}.` : 'proxy_proto.';
}

class ProxyProtocolFilter implements ListenerFilter {
  readonly maxBytes = MAX_HEADER_BYTES;
  readonly #stats: Scope;
  readonly #refusals: Scope;
  readonly #isOptional: boolean;
  readonly #disallowed: readonly Version[];
  /** The versions to detect: if a header is optional, a disallowed version is not recognized as one. */
  readonly #versions: readonly Version[];

  constructor(config: ProxyProtocol, stats: Scope, refusals: Scope) {
    this.#stats = stats;
    this.#refusals = refusals;
    this.#isOptional = config.allow_requests_without_proxy_protocol ?? false;
    this.#disallowed = (config.disallowed_versions ?? []).map(numberOf);
    this.#versions = VERSIONS.filter((version) => !this.#isOptional || !this.#disallowed.includes(version));
  }

  inspect(bytes: Uint8Array, connection: InspectedConnection): number {
    const { at } = ProxyProtocolStats;
    const version = versionOf(bytes, this.#versions);
    if (version === 'incomplete') return Verdict.NeedsMore;
    if (version === undefined) {
      if (!this.#isOptional) return this.#refuse(at.not_found_disallowed);
      this.#stats.increment(at.not_found_allowed);
      return 0;
    }
    if (this.#disallowed.includes(version)) {
      this.#stats.increment(at[`versions.v${version}.found`]);
      this.#stats.increment(at[`versions.v${version}.disallowed`]);
      return Verdict.Refuses;
    }
    const header = readHeader(version, bytes);
    if (header === 'incomplete') return Verdict.NeedsMore;
    if (header === 'invalid') return this.#refuse(at[`versions.v${version}.error`]);
    this.#stats.increment(at[`versions.v${version}.found`]);
    if (header.addresses !== undefined) {
      connection.remote = header.addresses.source;
      connection.local = header.addresses.destination;
    }
    return header.length;
  }

  #refuse(counter: CounterSlot): Verdict {
    this.#stats.increment(counter);
    this.#refusals.increment(RefusalStats.at.downstream_cx_proxy_proto_error);
    return Verdict.Refuses;
  }
}

function numberOf(version: ProxyProtocolConfig_Version): Version {
  return version === 'V1' ? 1 : 2;
}
