// RedirectAction, compiled: makes the Location of a redirect.

import { BatonError } from '../../../common/errors/errors.js';
import { byteText } from '../../../common/text/byte-text.js';
import { headerKey } from '../../../common/text/header-names.js';
import type { RedirectAction } from '../../../config/generated/api.js';
import type { HeaderBlock } from '../../headers/header-block.js';
import type { PathRule } from '../matching/path-rule.js';
import { PathRewrite } from './path-rewrite.js';

const HOST = headerKey('host');

export class Redirect {
  readonly status: number;
  /** '' keeps the scheme. */
  readonly #scheme: string;
  readonly #host: string;
  /** With its colon; '' when none is set. */
  readonly #port: string;
  readonly #path: string;
  readonly #rewrite: PathRewrite | undefined;
  readonly #stripsQuery: boolean;

  /** @throws BatonError when the action is invalid; `where` is its path in the configuration. */
  constructor(action: RedirectAction, rule: PathRule, where: string) {
    const status = STATUS[action.response_code ?? 'MOVED_PERMANENTLY'];
    if (status === undefined) {
      const message = `unknown redirect code '${action.response_code}'`;
      throw new BatonError('CONFIG_INVALID', message, { where: `${where}.response_code` });
    }
    this.status = status;
    if (action.scheme_redirect && !SCHEME.test(action.scheme_redirect)) {
      const at = { where: `${where}.scheme_redirect`, remedy: "give one such as 'https', without '://'" };
      throw new BatonError('CONFIG_INVALID', `'${action.scheme_redirect}' is not a valid URL scheme`, at);
    }
    if ((action.port_redirect ?? 0) > MAX_PORT) {
      const at = { where: `${where}.port_redirect`, remedy: `at most ${MAX_PORT}` };
      throw new BatonError('CONFIG_INVALID', `${action.port_redirect} is not a valid port`, at);
    }
    this.#scheme = action.https_redirect ? 'https' : (action.scheme_redirect ?? '');
    this.#host = byteText(action.host_redirect ?? '');
    this.#port = action.port_redirect ? `:${action.port_redirect}` : '';
    this.#path = byteText(action.path_redirect ?? '');
    if (action.prefix_rewrite || action.regex_rewrite !== undefined) {
      this.#rewrite = new PathRewrite(rule, action.prefix_rewrite, action.regex_rewrite, `${where}.regex_rewrite`);
    }
    this.#stripsQuery = action.strip_query ?? false;
  }

  /** Returns the Location for a request that arrived with `scheme`, one character per byte. */
  location(headers: HeaderBlock, scheme: string): string {
    const newScheme = this.#scheme === '' ? scheme : this.#scheme;
    const host = this.#host === '' ? this.#keptHost(headers, scheme, newScheme) : this.#host;
    return `${newScheme}://${host}${this.#port}${this.#newPath(headers)}`;
  }

  /** Returns the request's host, without its port if that is replaced or is the default of a scheme that changes. */
  #keptHost(headers: HeaderBlock, scheme: string, newScheme: string): string {
    const host = headers.get(HOST) ?? '';
    const colon = portStart(host);
    if (colon < 0) return host;
    const port = host.slice(colon);
    const wasDefault = newScheme !== scheme && port === (scheme === 'https' ? ':443' : ':80');
    return this.#port !== '' || wasDefault ? host.slice(0, colon) : host;
  }

  #newPath(headers: HeaderBlock): string {
    if (this.#path !== '') {
      // A query in path_redirect takes precedence and is never stripped.
      if (this.#path.includes('?') || this.#stripsQuery) return this.#path;
      const path = headers.pathText();
      const query = path.indexOf('?');
      return query < 0 ? this.#path : this.#path + path.slice(query);
    }
    const path = this.#rewrite?.text(headers) ?? headers.pathText();
    const query = path.indexOf('?');
    return this.#stripsQuery && query >= 0 ? path.slice(0, query) : path;
  }
}

/** Returns where the port of a Host begins (at its colon), or -1. Colons within the brackets of an IPv6 address do not count. */
export function portStart(host: string): number {
  const colon = host.lastIndexOf(':');
  return colon > host.lastIndexOf(']') ? colon : -1;
}

/** RFC 3986 section 3.1. */
const SCHEME = /^[A-Za-z][A-Za-z0-9+.-]*$/;
const MAX_PORT = 65_535;

const STATUS: Readonly<Record<string, number>> = {
  MOVED_PERMANENTLY: 301,
  FOUND: 302,
  SEE_OTHER: 303,
  TEMPORARY_REDIRECT: 307,
  PERMANENT_REDIRECT: 308,
};
