// The path condition of a route: prefix, whole path, prefix that ends at a slash, or regular expression. Queries are ignored.

import { BatonError } from '../../../common/errors/errors.js';
import { FOLD } from '../../../common/text/header-names.js';
import { lowerAscii } from '../../../common/text/lower-ascii.js';
import { compileFullMatch, type Regex } from '../../../common/text/regex.js';
import type { RouteMatch, UriTemplateMatchConfig } from '../../../config/generated/api.js';
import type { Memory } from '../../../io/memory.js';
import type { HeaderBlock } from '../../headers/header-block.js';
import { endsPath, pathEndOf } from './query.js';
import { regexText } from './regex-text.js';
import { located } from './string-rule.js';
import { UriTemplate } from './uri-template.js';

const enum Kind {
  Prefix = 0,
  Exact = 1,
  SeparatedPrefix = 2,
  Regex = 3,
  /** A configured path with '?' or '#', which the compared part of a path never contains. */
  Never = 4,
  /** Any target of CONNECT, and no path. */
  Connect = 5,
}

export class PathRule {
  readonly #kind: Kind;
  readonly #bytes: Uint8Array;
  readonly #length: number;
  readonly #ignoresCase: boolean;
  readonly #regex: Regex | undefined;
  /** The template of path_match_policy; undefined for other conditions. */
  readonly template: UriTemplate | undefined;

  /** @throws BatonError when the condition is invalid; `where` is its path in the configuration. */
  constructor(match: RouteMatch, where: string) {
    this.#ignoresCase = match.case_sensitive === false;
    let kind: Kind;
    let text = '';
    if (match.prefix !== undefined) {
      kind = Kind.Prefix;
      text = match.prefix;
    } else if (match.path !== undefined) {
      kind = Kind.Exact;
      text = match.path;
    } else if (match.path_separated_prefix !== undefined) {
      kind = Kind.SeparatedPrefix;
      text = match.path_separated_prefix;
    } else if (match.safe_regex !== undefined) {
      kind = Kind.Regex;
      const pattern = match.safe_regex.regex ?? '';
      this.#regex = located(`${where}.safe_regex.regex`, () => compileFullMatch(pattern));
    } else if (match.connect_matcher !== undefined) {
      kind = Kind.Connect;
    } else if (match.path_match_policy !== undefined) {
      kind = Kind.Regex;
      const { path_template: template = '' } = match.path_match_policy
        .typed_config as unknown as UriTemplateMatchConfig;
      this.template = new UriTemplate(template, `${where}.path_match_policy.typed_config.path_template`);
      this.#regex = this.template.regex;
    } else {
      const message =
        'a route match needs prefix, path, path_separated_prefix, safe_regex, path_match_policy or connect_matcher';
      throw new BatonError('CONFIG_INVALID', message, { where });
    }
    this.#kind = /[?#]/.test(text) ? Kind.Never : kind;
    this.#bytes = new TextEncoder().encode(this.#ignoresCase ? lowerAscii(text) : text);
    this.#length = this.#bytes.length;
  }

  /** The condition of CONNECT requests, which have no path. */
  get isForConnect(): boolean {
    return this.#kind === Kind.Connect;
  }

  /** Returns whether the path in [start, end) meets the condition. */
  matches(memory: Memory, start: number, end: number): boolean {
    const kind = this.#kind;
    if (kind >= Kind.Regex) return kind === Kind.Regex && this.#matchesRegex(memory, start, end);
    const length = this.#length;
    if (end - start < length) return false;
    const bytes = memory.bytes;
    const wanted = this.#bytes;
    // From the end, because sibling routes often share a prefix.
    if (this.#ignoresCase) {
      for (let i = length - 1; i >= 0; i--) if (FOLD[bytes[start + i]!] !== wanted[i]) return false;
    } else {
      for (let i = length - 1; i >= 0; i--) if (bytes[start + i] !== wanted[i]) return false;
    }
    if (kind === Kind.Prefix) return true;
    const after = start + length;
    return endsPath(bytes, after, end) || (kind === Kind.SeparatedPrefix && bytes[after] === SLASH);
  }

  /** Returns the length of the part of a matching path that prefix_rewrite replaces. */
  matchedLength(headers: HeaderBlock): number {
    if (this.#kind !== Kind.Regex) return this.#length;
    return pathEndOf(headers.memory.bytes, headers.pathStart, headers.pathEnd) - headers.pathStart;
  }

  #matchesRegex(memory: Memory, start: number, end: number): boolean {
    return this.#regex!.test(regexText(memory, start, pathEndOf(memory.bytes, start, end)));
  }
}

const SLASH = 47;
