// Rewrites the Host of forwarded requests.

import { headerKey } from '../../../common/text/header-names.js';
import type { Replacement } from '../../../common/text/regex.js';
import type { RouteAction } from '../../../config/generated/api.js';
import type { HeaderBlock } from '../../headers/header-block.js';
import { beginLine, endLine, HeaderLine } from '../../headers/header-line.js';
import { type HeaderReader, headerReader } from '../matching/header-reader.js';
import { pathEndOf } from '../matching/query.js';
import { replacedText } from '../matching/regex-text.js';
import { replacementOf } from '../matching/string-rule.js';

const HOST = headerKey('host');
const ORIGINAL_HOST = headerKey('x-envoy-original-host');
const FORWARDED_HOST = headerKey('x-forwarded-host');

/** host_rewrite_literal, host_rewrite_header or host_rewrite_path_regex. */
export class HostRewrite {
  readonly #literal: HeaderLine | undefined;
  readonly #header: HeaderReader | undefined;
  readonly #replacement: Replacement | undefined;
  readonly #appendsForwardedHost: boolean;

  /** @throws BatonError CONFIG_INVALID or REGEX_INVALID; `where` is the action's path in the configuration. */
  constructor(action: RouteAction, where: string) {
    const regex = action.host_rewrite_path_regex;
    this.#literal = action.host_rewrite_literal ? new HeaderLine(HOST, action.host_rewrite_literal) : undefined;
    if (action.host_rewrite_header) {
      this.#header = headerReader(action.host_rewrite_header, `${where}.host_rewrite_header`);
    }
    if (regex !== undefined) this.#replacement = replacementOf(regex, `${where}.host_rewrite_path_regex`);
    this.#appendsForwardedHost = action.append_x_forwarded_host ?? false;
  }

  /** Returns the rewrite of an action, or undefined if it keeps the host. */
  static of(action: RouteAction, where: string): HostRewrite | undefined {
    const isConfigured =
      action.host_rewrite_literal || action.host_rewrite_header || action.host_rewrite_path_regex !== undefined;
    return isConfigured ? new HostRewrite(action, where) : undefined;
  }

  apply(headers: HeaderBlock, keepsOriginal: boolean): void {
    if (this.#literal !== undefined) {
      recordOriginalHost(headers, this.#appendsForwardedHost, keepsOriginal);
      this.#literal.setIn(headers);
      return;
    }
    const host = this.#newHost(headers);
    if (host !== '') rewriteHost(headers, host, this.#appendsForwardedHost, keepsOriginal);
  }

  #newHost(headers: HeaderBlock): string {
    if (this.#header !== undefined) return this.#header(headers) ?? '';
    const { memory, pathStart } = headers;
    const pathEnd = pathEndOf(memory.bytes, pathStart, headers.pathEnd);
    return replacedText(memory, pathStart, pathEnd, this.#replacement!);
  }
}

/**
 * host_rewrite_literal of a weighted cluster. As in Envoy it replaces the Host without a record of the former one, before the route's own
 * rewrite, which finds the new Host.
 */
export function literalHost(literal: string | undefined): HeaderLine | undefined {
  return literal ? new HeaderLine(HOST, literal) : undefined;
}

/** Replaces the Host of a request. Also used for auto_host_rewrite, when the upstream host is known. */
export function rewriteHost(
  headers: HeaderBlock,
  host: string,
  appendsForwardedHost: boolean,
  keepsOriginal: boolean,
): void {
  recordOriginalHost(headers, appendsForwardedHost, keepsOriginal);
  headers.set(HOST, host);
}

/** Records the former host in x-forwarded-host, unless it is already the last value there, and in x-envoy-original-host. */
function recordOriginalHost(headers: HeaderBlock, appends: boolean, keepsOriginal: boolean): void {
  const index = headers.find(HOST);
  if (index < 0) return;
  if (appends && headers.valueEnd(index) > headers.valueStart(index))
    appendForwardedHost(headers, headers.value(index));
  if (keepsOriginal) {
    headers.remove(ORIGINAL_HOST);
    const length = headers.valueEnd(index) - headers.valueStart(index);
    const at = beginLine(headers, ORIGINAL_HOST, length);
    headers.memory.copy(at, headers.valueStart(index), headers.valueEnd(index));
    endLine(headers, ORIGINAL_HOST, at, at + length);
  }
}

function appendForwardedHost(headers: HeaderBlock, host: string): void {
  const former = headers.get(FORWARDED_HOST);
  if (former === undefined || former === '') headers.set(FORWARDED_HOST, host);
  else if (former.slice(former.lastIndexOf(',') + 1).trim() !== host) headers.set(FORWARDED_HOST, `${former},${host}`);
}
