// cache-control: no-transform (RFC 9111, section 5.2.2.6): proxies must not change the body.

import { type HeaderBlock, headerKey } from '../sdk.js';

const CACHE_CONTROL = headerKey('cache-control');

export function forbidsTransform(headers: HeaderBlock): boolean {
  const directives = headers.get(CACHE_CONTROL);
  if (directives === undefined) return false;
  return directives.split(',').some((directive) => directive.trim().toLowerCase() === 'no-transform');
}
