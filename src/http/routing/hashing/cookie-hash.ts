// A cookie in a hash policy. With a ttl, a client without the cookie gets one in the response, so that its next requests go to the same
// host.

import type { StreamInfo } from '../../../access-log/stream/stream-info.js';
import { BatonError } from '../../../common/errors/errors.js';
import { byteText } from '../../../common/text/byte-text.js';
import { headerKey, isFieldName } from '../../../common/text/header-names.js';
import { durationMs } from '../../../common/time/duration.js';
import { type Word64, xxh64, xxh64Text } from '../../../common/xxh64.js';
import type { RouteAction_HashPolicy_Cookie } from '../../../config/generated/api.js';
import type { HeaderBlock } from '../../headers/header-block.js';
import { findCookie } from '../matching/cookies.js';

const COOKIE = headerKey('cookie');

export class CookieHash {
  readonly #name: string;
  readonly #nameBytes: Uint8Array;
  /** Attributes after the value in set-cookie; undefined: no cookie is generated. */
  readonly #attributes: string | undefined;

  /** @throws BatonError CONFIG_INVALID; `where` is its path in the configuration */
  constructor(config: RouteAction_HashPolicy_Cookie, where: string) {
    this.#name = config.name ?? '';
    this.#nameBytes = new TextEncoder().encode(this.#name);
    const attributes = cookieAttributes(config, where);
    this.#attributes = config.ttl === undefined ? undefined : attributes;
  }

  evaluate(headers: HeaderBlock, info: StreamInfo, hash: Word64, cookies: string[] | undefined): boolean {
    const { bytes } = headers.memory;
    for (let index = headers.find(COOKIE); index >= 0; index = headers.find(COOKIE, index + 1)) {
      if (!findCookie(bytes, headers.valueStart(index), headers.valueEnd(index), this.#nameBytes, found)) continue;
      if (found.start === found.end) break;
      xxh64(bytes, found.start, found.end, hash);
      return true;
    }
    if (this.#attributes === undefined || cookies === undefined) return false;
    // Derived from the connection, so that requests before the first response get the same cookie.
    xxh64Text((info.downstream?.remoteText ?? '') + info.downstreamLocalAddress, hash);
    const value = hex(hash.hi) + hex(hash.lo);
    cookies.push(`${this.#name}="${value}"${this.#attributes}`);
    xxh64Text(value, hash);
    return true;
  }
}

const found = { start: 0, end: 0 };

function hex(half: number): string {
  return (half >>> 0).toString(16).padStart(8, '0');
}

/**
 * Validates a cookie of the configuration. Returns what follows the value in a set-cookie field. Throws a BatonError; `where` is the path of the
 * cookie in the configuration.
 */
export function cookieAttributes(config: RouteAction_HashPolicy_Cookie, where: string): string {
  const { name = '' } = config;
  if (!isFieldName(name)) {
    const remedy = "a name has letters, digits and !#$%&'*+-.^_`|~";
    throw new BatonError('CONFIG_INVALID', `'${name}' is not a valid cookie name`, { where: `${where}.name`, remedy });
  }
  const seconds = Math.trunc(durationMs(config.ttl, 0) / 1000);
  if (config.ttl?.startsWith('-')) {
    throw new BatonError('CONFIG_INVALID', `it must not be negative, found ${config.ttl}`, { where: `${where}.ttl` });
  }
  let text = seconds === 0 ? '' : `; Max-Age=${seconds}`;
  if (config.path) text += `; Path=${attributeText(config.path, `${where}.path`)}`;
  for (const [index, { name = '', value }] of (config.attributes ?? []).entries()) {
    const at = `${where}.attributes[${index}]`;
    text += `; ${attributeText(name, `${at}.name`)}`;
    if (value) text += `=${attributeText(value, `${at}.value`)}`;
  }
  return `${text}; HttpOnly`;
}

/** Validates a cookie attribute and converts it to one character per byte. */
function attributeText(text: string, where: string): string {
  if (!/[\0-\x1f\x7f;]/.test(text)) return byteText(text);
  throw new BatonError('CONFIG_INVALID', "a part of a cookie holds neither ';' nor control characters", { where });
}
