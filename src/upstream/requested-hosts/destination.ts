// The host that a request goes to in a cluster of type ORIGINAL_DST, from the connection or from what the request carries.

import type { StreamInfo } from '../../access-log/stream/stream-info.js';
import type { Cluster, Json, Struct } from '../../config/generated/api.js';
import type { HeaderBlock } from '../../http/headers/header-block.js';
import { type HeaderReader, headerReader } from '../../http/routing/matching/header-reader.js';
import {
  type Address,
  AddressKind,
  addressOfSockaddr,
  addressText,
  encodeAddress,
  parseAddress,
} from '../../io/addresses/address.js';
import type { ScopeRef } from '../../stats/thread-stats.js';

/** Envoy's default of http_header_name. */
export const DESTINATION_HEADER = 'x-envoy-original-dst-host';

/** How requests name their host; plain data. */
export type DestinationSpec = AddressDestination | NameDestination;

/** By an address: type ORIGINAL_DST. */
export interface AddressDestination {
  readonly kind: 'address';
  readonly maxWaiting: number;
  /** '': in no header. */
  readonly header: string;
  /** Namespace and keys of dynamic metadata; empty: not there. */
  readonly metadata: readonly string[];
  /** Replaces the port; 0: it does not. */
  readonly port: number;
}

/** By a name that is resolved: a dynamic forward proxy. */
export interface NameDestination {
  readonly kind: 'name';
  /** Limit of requests that wait for a name. */
  readonly maxWaiting: number;
  /** The port of names that have none. */
  readonly defaultPort: number;
  /** dns_cache.<name>. */
  readonly scope: ScopeRef;
}

/** Maximum of requests and connections of a cluster of type ORIGINAL_DST that wait: further ones fail. */
const MAX_WAITING = 4096;

export function destinationSpec({ original_dst_lb_config: config = {} }: Cluster): AddressDestination {
  const { key = '', path = [] } = config.metadata_key ?? {};
  return {
    kind: 'address',
    maxWaiting: MAX_WAITING,
    header: config.use_http_header ? config.http_header_name || DESTINATION_HEADER : '',
    metadata: config.metadata_key === undefined ? [] : [key, ...path.map((segment) => segment.key ?? '')],
    port: config.upstream_port_override ?? 0,
  };
}

/** Finds the key of the host that a request or connection names. */
export interface DestinationReader {
  /** Returns undefined if it names none. `headers`: undefined for a connection. */
  read(headers: HeaderBlock | undefined, info: StreamInfo): string | undefined;
}

/** Reads the address of the destination. */
export class AddressReader implements DestinationReader {
  readonly #spec: AddressDestination;
  readonly #header: HeaderReader | undefined;
  readonly #invalid: () => void;

  /** @param invalid called for each text that is no IP address with port */
  constructor(spec: AddressDestination, invalid: () => void) {
    this.#spec = spec;
    this.#header =
      spec.header === '' ? undefined : headerReader(spec.header, 'original_dst_lb_config.http_header_name');
    this.#invalid = invalid;
  }

  /**
   * Returns the address as text with port; undefined if there is none. As in Envoy, what the request carries comes before what a listener
   * filter has found. `headers`: undefined for a connection.
   */
  read(headers: HeaderBlock | undefined, info: StreamInfo): string | undefined {
    const text = this.#fromMetadata(info) ?? this.#fromHeader(headers) ?? this.#fromConnection(info);
    const { port } = this.#spec;
    if (port === 0 || text === undefined) return text;
    return `${text.slice(0, text.lastIndexOf(':'))}:${port}`;
  }

  #fromMetadata({ dynamicMetadata }: StreamInfo): string | undefined {
    const [namespace = '', ...path] = this.#spec.metadata;
    let value: Json | undefined = namespace === '' ? undefined : dynamicMetadata?.get(namespace);
    for (const key of path) value = memberOf(value, key);
    if (Array.isArray(value)) value = value[0];
    return typeof value === 'string' ? this.#parse(value) : undefined;
  }

  #fromHeader(headers: HeaderBlock | undefined): string | undefined {
    const text = headers && this.#header?.(headers);
    if (text === undefined) return undefined;
    // The client may have sent several: the first counts.
    const comma = text.indexOf(',');
    return this.#parse(comma < 0 ? text : text.slice(0, comma));
  }

  #fromConnection({ downstream }: StreamInfo): string | undefined {
    if (downstream?.isLocalRestored !== true) return undefined;
    const { localText } = downstream;
    return localText[0] === '/' || localText[0] === '@' ? undefined : localText;
  }

  #parse(text: string): string | undefined {
    const address = destinationAddress(text);
    if (address === undefined) this.#invalid();
    return address && addressText(address);
  }
}

/**
 * Parses an IP address with port; undefined: the text is not one. An IPv4-mapped one becomes IPv4, because threads find hosts by the text of
 * their socket address.
 */
export function destinationAddress(text: string): Address | undefined {
  const address = parseAddress(text);
  return address === undefined || address.kind === AddressKind.Unix
    ? undefined
    : addressOfSockaddr(encodeAddress(address));
}

function memberOf(value: Json | undefined, key: string): Json | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  return Object.hasOwn(value, key) ? (value as Struct)[key] : undefined;
}
