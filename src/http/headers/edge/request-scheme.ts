// The scheme of a request (:scheme in Envoy).

import type { HeaderView } from '../../../access-log/stream/header-view.js';
import { equalsFolded, headerKey } from '../../../common/text/header-names.js';

export type Scheme = 'http' | 'https';

/**
 * Returns the scheme of the request's URL, or that of its client's connection to the first proxy. Returns '' before ForwardingRules have
 * ensured x-forwarded-proto.
 */
export function requestScheme(headers: HeaderView): Scheme | '' {
  if (headers.scheme !== '') return headers.scheme;
  const index = headers.findValue(FORWARDED_PROTO);
  return index < 0 ? '' : (schemeAt(headers, index) ?? '');
}

/** Returns the scheme in a field's value; undefined if it is neither http nor https. */
export function schemeAt(headers: HeaderView, index: number): Scheme | undefined {
  const { bytes } = headers.memory;
  const start = headers.valueStart(index);
  const end = headers.valueEnd(index);
  if (equalsFolded(bytes, start, end, HTTPS)) return 'https';
  return equalsFolded(bytes, start, end, HTTP) ? 'http' : undefined;
}

const FORWARDED_PROTO = headerKey('x-forwarded-proto');
const HTTP = Buffer.from('http');
const HTTPS = Buffer.from('https');
