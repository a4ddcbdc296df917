// prefix_rewrite and regex_rewrite: replace the path and keep the query.

import { headerKey } from '../../../common/text/header-names.js';
import type { Replacement } from '../../../common/text/regex.js';
import type { RegexMatchAndSubstitute } from '../../../config/generated/api.js';
import type { HeaderBlock } from '../../headers/header-block.js';
import { beginLine, endLine } from '../../headers/header-line.js';
import type { PathRule } from '../matching/path-rule.js';
import { pathEndOf } from '../matching/query.js';
import { replacedText } from '../matching/regex-text.js';
import { replacementOf } from '../matching/string-rule.js';

const ORIGINAL_PATH = headerKey('x-envoy-original-path');

export class PathRewrite {
  readonly #rule: PathRule;
  readonly #prefix: Uint8Array;
  readonly #replacement: Replacement | undefined;

  /**
   * @param rule the condition that the path matched, which determines how much of it `prefix` replaces
   * @throws BatonError REGEX_INVALID; `where` is the path of regex_rewrite in the configuration
   */
  constructor(rule: PathRule, prefix: string | undefined, regex: RegexMatchAndSubstitute | undefined, where: string) {
    this.#rule = rule;
    this.#prefix = new TextEncoder().encode(prefix ?? '');
    if (regex !== undefined) this.#replacement = replacementOf(regex, where);
  }

  /** Returns the new path and query, one character per byte. */
  text(headers: HeaderBlock): string {
    const { memory, pathStart, pathEnd } = headers;
    if (this.#replacement === undefined) {
      const kept = memory.text(pathStart + this.#rule.matchedLength(headers), pathEnd);
      return Buffer.from(this.#prefix).toString('latin1') + kept;
    }
    const queryStart = pathEndOf(memory.bytes, pathStart, pathEnd);
    const path = replacedText(memory, pathStart, queryStart, this.#replacement);
    // A request target cannot be empty.
    return (path === '' ? '/' : path) + memory.text(queryStart, pathEnd);
  }

  /** Rewrites the request's path. With `keepsOriginal`, x-envoy-original-path gets the former one. */
  apply(headers: HeaderBlock, keepsOriginal: boolean): void {
    if (keepsOriginal) recordOriginalPath(headers);
    if (this.#replacement !== undefined) headers.setTarget(this.text(headers));
    else this.#replacePrefix(headers);
  }

  #replacePrefix(headers: HeaderBlock): void {
    const prefix = this.#prefix;
    const keptLength = headers.pathEnd - headers.pathStart - this.#rule.matchedLength(headers);
    const start = headers.room(prefix.length + keptLength);
    const { memory } = headers;
    for (let i = 0; i < prefix.length; i++) memory.bytes[start + i] = prefix[i]!;
    memory.copy(start + prefix.length, headers.pathEnd - keptLength, headers.pathEnd);
    headers.pathStart = start;
    headers.pathEnd = start + prefix.length + keptLength;
    headers.startLineEnd = headers.startLineStart;
  }
}

/** Writes x-envoy-original-path. */
export function recordOriginalPath(headers: HeaderBlock): void {
  headers.remove(ORIGINAL_PATH);
  const length = headers.pathEnd - headers.pathStart;
  const at = beginLine(headers, ORIGINAL_PATH, length);
  headers.memory.copy(at, headers.pathStart, headers.pathEnd);
  endLine(headers, ORIGINAL_PATH, at, at + length);
}
