// The hosts that requests name in header fields and metadata (the policy override_host), instead of those that a load balancer picks.

import type { StreamInfo } from '../../access-log/stream/stream-info.js';
import { headerKey } from '../../common/text/header-names.js';
import type { Struct } from '../../config/generated/api.js';
import type { HeaderBlock } from '../../http/headers/header-block.js';
import { valueAt } from '../../http/routing/matching/value-rule.js';
import { AddressKind, addressText, parseAddress } from '../../io/addresses/address.js';

/** A place in dynamic metadata. */
export interface MetadataPlace {
  readonly namespace: string;
  /** At least one key. */
  readonly path: readonly string[];
}

/** Plain data. */
export interface OverrideSpec {
  /** Header fields and metadata with addresses, in the order of preference. */
  readonly sources: readonly (string | MetadataPlace)[];
  /** Where the address of each chosen host is stored; undefined: nowhere. */
  readonly selected: MetadataPlace | undefined;
}

/** Clients may write the fields. */
const MAX_ADDRESSES = 64;

export class HostOverrides {
  readonly #sources: readonly ((headers: HeaderBlock | undefined, info: StreamInfo) => string | undefined)[];
  readonly #selected: MetadataPlace | undefined;

  constructor({ selected, sources }: OverrideSpec) {
    this.#sources = sources.map((source) => {
      if (typeof source !== 'string') return (_headers, info) => textAt(info, source);
      const key = headerKey(source);
      return (headers) => {
        const index = headers?.find(key) ?? -1;
        return index < 0 ? undefined : headers!.value(index);
      };
    });
    this.#selected = selected;
  }

  /** Returns the addresses that a stream names, in the order of its tries. `headers`: undefined for a connection. */
  addresses(headers: HeaderBlock | undefined, info: StreamInfo): string[] {
    const found: string[] = [];
    for (const source of this.#sources) {
      for (const text of source(headers, info)?.split(',', MAX_ADDRESSES) ?? []) {
        const address = parseAddress(text.trim());
        if (address !== undefined && address.kind !== AddressKind.Unix) found.push(addressText(address));
      }
    }
    return found;
  }

  /** Stores the address of a chosen host. */
  select(info: StreamInfo, address: string): void {
    if (this.#selected === undefined) return;
    const { namespace, path } = this.#selected;
    const value = path.reduceRight<string | Struct>((inner, key) => ({ [key]: inner }), address);
    info.ownDynamicMetadata().merge(namespace, value as Struct);
  }
}

function textAt(info: StreamInfo, { namespace, path }: MetadataPlace): string | undefined {
  const struct = info.dynamicMetadata?.get(namespace);
  const value = struct && valueAt(struct, path);
  return typeof value === 'string' ? value : undefined;
}
