// original_ip_detection_extensions: where a request carries the address of its client. The first one that finds an address decides.

import { BatonError, buildEach } from '../../../common/errors/errors.js';
import { type HeaderKey, headerKey } from '../../../common/text/header-names.js';
import { errorStatus } from '../../../config/fields/http-status.js';
import type { CustomHeaderConfig, TypedExtensionConfig, XffConfig } from '../../../config/generated/api.js';
import { ipAddress } from '../../../io/addresses/address.js';
import type { HeaderBlock } from '../header-block.js';
import { InternalAddresses } from './internal-addresses.js';

const FORWARDED_FOR = headerKey('x-forwarded-for');
const FORBIDDEN = 403;

/** What one extension finds. */
interface Detected {
  /** In canonical form; '' if there is none. */
  readonly ip: string;
  /** The address may make the request internal. */
  readonly isTrusted: boolean;
  /** The peer is added to x-forwarded-for. */
  readonly appendsPeer: boolean;
}

const NOTHING: Detected = { ip: '', isTrusted: false, appendsPeer: false };
const UNTRUSTED_PEER: Detected = { ip: '', isTrusted: false, appendsPeer: true };

type Detector = (headers: HeaderBlock, peer: string) => Detected | number;

/** There is one for each connection manager and thread. */
export class OriginalIpDetection {
  /** Results of the last detect(): the client's address, '' if none was found; and whether it may make the request internal. */
  ip = '';
  isTrusted = false;
  /** Result of the last detect(): the response status if the request is refused, else 0. */
  refusal = 0;
  readonly #detectors: readonly Detector[];

  private constructor(detectors: readonly Detector[]) {
    this.#detectors = detectors;
  }

  /**
   * Returns undefined without extensions.
   * @throws BatonError CONFIG_INVALID
   */
  static of(configs: readonly TypedExtensionConfig[] | undefined, where: string): OriginalIpDetection | undefined {
    if (configs === undefined || configs.length === 0) return undefined;
    const detectors = buildEach(configs, ({ typed_config: config }, index) => {
      const at = `${where}[${index}].typed_config`;
      const isXff = config?.['@type'].endsWith('XffConfig') === true;
      return isXff ? byForwardedFor(config as XffConfig, at) : byHeader(config as unknown as CustomHeaderConfig);
    });
    return new OriginalIpDetection(detectors);
  }

  /** `peer`: of the connection; `append` adds it to x-forwarded-for. */
  detect(headers: HeaderBlock, peer: string, append: () => void): void {
    this.ip = '';
    this.isTrusted = false;
    this.refusal = 0;
    for (const detector of this.#detectors) {
      const found = detector(headers, peer);
      if (typeof found === 'number') {
        this.refusal = found;
        return;
      }
      if (found.appendsPeer) append();
      if (found.ip === '') continue;
      this.ip = found.ip;
      this.isTrusted = found.isTrusted;
      return;
    }
  }
}

function byHeader(config: CustomHeaderConfig): Detector {
  const key: HeaderKey = headerKey(config.header_name ?? '');
  const isTrusted = config.allow_extension_to_set_address_as_trusted ?? false;
  const refusal = config.reject_with_status && errorStatus(config.reject_with_status, FORBIDDEN);
  return (headers) => {
    const index = headers.find(key);
    const ip = index < 0 ? '' : addressIn(headers.value(index));
    return ip === '' ? (refusal ?? NOTHING) : { ip, isTrusted, appendsPeer: false };
  };
}

function byForwardedFor(config: XffConfig, where: string): Detector {
  const { skip_xff_append: skips = true, xff_num_trusted_hops: hops = 0, xff_trusted_cidrs: ranges } = config;
  const appendsPeer = !skips;
  if (ranges === undefined) return (headers) => ({ ...behindHops(entriesOf(headers), hops), appendsPeer });
  if (hops > 0) {
    const message = 'xff_num_trusted_hops and xff_trusted_cidrs exclude each other';
    throw new BatonError('CONFIG_INVALID', message, { where });
  }
  const trusted = new InternalAddresses({ cidr_ranges: ranges.cidrs ?? [] });
  return (headers, peer) =>
    trusted.has(peer) ? { ...behindTrusted(entriesOf(headers), trusted), appendsPeer } : UNTRUSTED_PEER;
}

function behindHops(entries: readonly string[], hops: number): Omit<Detected, 'appendsPeer'> {
  return { ip: addressIn(entries.at(-1 - hops) ?? ''), isTrusted: hops === 0 && entries.length === 1 };
}

/** Finds the last address outside of the trusted ranges, or the first one if there is none; nothing if another value precedes it. */
function behindTrusted(entries: readonly string[], trusted: InternalAddresses): Omit<Detected, 'appendsPeer'> {
  let ip = '';
  for (const entry of entries.toReversed()) {
    const address = addressIn(entry);
    if (address === '') return { ip: '', isTrusted: false };
    ip = address;
    if (!trusted.has(address)) break;
  }
  return { ip, isTrusted: entries.length === 1 };
}

function entriesOf(headers: HeaderBlock): string[] {
  return headers.get(FORWARDED_FOR)?.split(',') ?? [];
}

/** Returns the canonical form of an address; '' if the text is not an address. */
function addressIn(text: string): string {
  const trimmed = text.trim();
  // A zone ID that names an interface of another machine has no meaning here.
  return /%[^0-9]/.test(trimmed) ? '' : (ipAddress(trimmed, 0)?.ip ?? '');
}
