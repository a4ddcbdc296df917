// The HttpUri of a token endpoint, compiled.

import type { HttpUri } from '../../../../config/generated/api.js';
import { BatonError, byteText, durationMs, MAX_TIMER_MS, type RetryPolicy } from '../../../sdk.js';
import type { TokenEndpoint } from './token-call.js';

/** Compiles an endpoint. As in Envoy, its URI need not have a scheme. Throws BatonErrors; `where` is its path. */
export function tokenEndpoint(
  { cluster = '', timeout, uri = '' }: HttpUri,
  where: string,
  retries?: RetryPolicy,
): TokenEndpoint {
  const text = byteText(uri);
  const rest = text.slice(text.includes('://') ? text.indexOf('://') + 3 : 0);
  const slash = rest.indexOf('/');
  const timeoutMs = durationMs(timeout, 1);
  if (!/^[\x21\x22\x24-\x7e]*$/.test(rest)) throw mistake(`'${uri}' is not a URI`, `${where}.uri`);
  if (timeoutMs === 0)
    throw mistake('must be above 0: without a timeout a request could wait forever', `${where}.timeout`);
  return {
    cluster,
    host: slash < 0 ? rest : rest.slice(0, slash),
    path: slash < 0 ? '/' : rest.slice(slash),
    timeoutMs: Math.min(MAX_TIMER_MS, timeoutMs),
    retries,
  };
}

function mistake(message: string, where: string): BatonError {
  return new BatonError('CONFIG_INVALID', message, { where });
}
