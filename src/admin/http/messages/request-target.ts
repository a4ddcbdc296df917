// Parses a request target: a path, or an absolute URL, as clients send it to proxies.

import { mergedPath } from '../../../http/normalization/path-normalization.js';

export interface Target {
  /** Path and query. */
  readonly path: string;
  /** The authority of a target in absolute form: it replaces the Host header (RFC 9112 §3.2.2). */
  readonly authority: string | undefined;
}

export function parseTarget(target: string): Target {
  const found = /^https?:\/\/([^/?]*)/i.exec(target);
  if (found === null) return { path: target, authority: undefined };
  const rest = target.slice(found[0].length);
  return { path: rest.startsWith('/') ? rest : `/${rest}`, authority: found[1]! };
}

/**
 * Returns a path with its query as Envoy's admin interface matches it: without repeated slashes, dot segments and needless
 * escapes. Undefined if the request must be refused, for a fragment or a NUL.
 */
export function normalizedTarget(target: string): string | undefined {
  if (PLAIN.test(target)) return target;
  if (target.includes('#')) return undefined;
  if (!target.startsWith('/')) return target;
  const question = target.indexOf('?');
  const path = mergedPath(question < 0 ? target : target.slice(0, question));
  return path === undefined || question < 0 ? path : path + target.slice(question);
}

const PLAIN = /^(?:\/[\w-]+)+(?:\?[^#]*)?$/;
