// The scheme of a request, :scheme in Envoy's words.

import type { HeaderView } from '../../../access-log/stream/header-view.js';
import { equalsFolded, headerKey } from '../../../common/text/header-names.js';

export type Scheme = 'http' | 'https';

/** That of its URL, or by which its client came to the first proxy; '' until the edge rules have run, which see to x-forwarded-proto. */
export function requestScheme(headers: HeaderView): Scheme | '' {
  if (headers.scheme !== '') return headers.scheme;
  const index = headers.findValue(FORWARDED_PROTO);
  return index < 0 ? '' : (schemeAt(headers, index) ?? '');
}

/** The scheme that a field names; undefined: none that a client could have come by. */
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
