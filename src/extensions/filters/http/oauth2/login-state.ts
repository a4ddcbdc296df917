// The state parameter: it leads the browser back from the authorization server to the page that it requested, in the same flow.

import { decoded, structOf } from '../jwt-authn/token.js';
import { type CookieKeys, isEqual } from './cipher.js';
import { isAllowed, parseUrl, QueryParameters } from './urls.js';

/** A valid request to the redirect path. */
export interface Callback {
  readonly url: string;
  readonly code: string;
  readonly flow: string;
}

export interface InvalidCallback {
  readonly reason: string;
  /** '': unknown, or not to be trusted. */
  readonly flow: string;
}

/** What a callback is checked against. */
export interface CallbackContext {
  readonly keys: CookieKeys;
  readonly domains: readonly string[];
  /** Returns the nonce cookie of a flow. */
  nonce(flow: string): string | undefined;
}

/** Returns a token that only holders of the secret can make: the flow and its signature. */
export function csrfToken(flow: string, keys: CookieKeys): string {
  return `${flow}.${keys.sign(flow)}`;
}

/** Returns the state of a flow; `url` is the requested page. */
export function encodeState(url: string, token: string, flow: string): string {
  const text = JSON.stringify(Buffer.from(url, 'latin1').toString());
  return Buffer.from(`{"url":${text},"csrf_token":"${token}","flow_id":"${flow}"}`).toString('base64url');
}

/** Checks the parameters of a request to the redirect path. */
export function checkCallback(path: string, context: CallbackContext): Callback | InvalidCallback {
  const query = QueryParameters.of(path.replace(/#.*/s, ''));
  const code = query.first('code');
  const state = query.first('state');
  if (query.first('error') !== undefined) {
    const { flow } = state === undefined ? { flow: '' } : checkState(state, context);
    return { reason: `OAuth server returned an error: ${query}`, flow };
  }
  if (code === undefined || state === undefined) {
    return { reason: `Code or state query param does not exist: ${query}`, flow: '' };
  }
  const checked = checkState(state, context);
  return 'reason' in checked ? checked : { ...checked, code };
}

function checkState(text: string, context: CallbackContext): Omit<Callback, 'code'> | InvalidCallback {
  const bytes = decoded(text) ?? Buffer.alloc(0);
  const state = structOf(bytes);
  const shown = bytes.toString('latin1');
  if (state === undefined) return { reason: `State query param is not a valid JSON: ${shown}`, flow: '' };
  if (!Object.hasOwn(state, 'url') || !Object.hasOwn(state, 'csrf_token')) {
    return { reason: `State query param does not contain url or CSRF token: ${shown}`, flow: '' };
  }
  const token = stringOf(state['csrf_token']);
  const flow = Object.hasOwn(state, 'flow_id') ? stringOf(state['flow_id']) : '';
  // The flow is not to be trusted before the token is checked.
  if (!isValidToken(token, flow, context)) return { reason: 'CSRF token validation failed', flow: '' };
  const url = stringOf(state['url']);
  if (parseUrl(url) === undefined) return { reason: `State url can not be initialized: ${url}`, flow };
  if (!isAllowed(url, context.domains)) {
    return { reason: `State url host is not in the allowed redirect domains: ${url}`, flow };
  }
  return { url, flow };
}

function isValidToken(token: string, flow: string, { keys, nonce }: CallbackContext): boolean {
  const cookie = nonce(flow);
  if (cookie === undefined || !isEqual(cookie, token)) return false;
  const dot = token.indexOf('.');
  // The flow gets into the names of cookies. It is the signed part of the token, or absent in states of older versions of Envoy.
  if (dot < 0 || (flow !== '' && flow !== token.slice(0, dot))) return false;
  return isEqual(keys.sign(token.slice(0, dot)), token.slice(dot + 1));
}

/** One character for each byte. */
function stringOf(value: unknown): string {
  return typeof value === 'string' ? Buffer.from(value).toString('latin1') : '';
}
