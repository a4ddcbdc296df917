// envoy.config.route.v3.HeaderMatcher, compiled: one condition on a header of a request or response.

import type { HeaderView } from '../../../access-log/stream/header-view.js';
import { BatonError } from '../../../common/errors/errors.js';
import { type HeaderKey, headerKey } from '../../../common/text/header-names.js';
import type { HeaderMatcher } from '../../../config/generated/api.js';
import { requestScheme } from '../../headers/edge/request-scheme.js';
import { checkFieldName } from '../../headers/field-name.js';
import { compileStringMatcher, regexRule, StringKind, StringRule } from './string-rule.js';

const enum Test {
  Present = 0,
  Absent = 1,
  /** By a StringRule. */
  Text = 2,
  Range = 3,
  /** A deprecated exact_match of "": any value of a present header. */
  AnyValue = 4,
}

/** Where the value is found; all but Field are pseudo-headers. */
const enum Source {
  Field = 0,
  Method = 1,
  Path = 2,
  Status = 3,
  Scheme = 4,
}

/**
 * One HeaderMatcher. As in Envoy, repeated fields are matched one by one, except for list headers (HeaderKey.joinedIn), which are matched
 * as one joined value.
 */
export class HeaderRule {
  readonly #key: HeaderKey;
  readonly #source: Source;
  readonly #test: Test;
  readonly #text: StringRule | undefined;
  readonly #from: bigint;
  readonly #to: bigint;
  readonly #isInverted: boolean;
  readonly #missingIsEmpty: boolean;

  /** @throws BatonError when the matcher is invalid; `where` is its path in the configuration. */
  constructor(config: HeaderMatcher, where: string) {
    const name = (config.name ?? '').toLowerCase();
    if (name === '') throw new BatonError('CONFIG_INVALID', 'a header matcher needs a name', { where });
    checkFieldName(name.replace(/^:/, ''), `${where}.name`);
    this.#source = sourceOf(name);
    this.#key = headerKey(name === ':authority' ? 'host' : name);
    this.#isInverted = config.invert_match ?? false;
    this.#missingIsEmpty = config.treat_missing_header_as_empty ?? false;
    this.#text = textRule(config, where);
    this.#from = BigInt(config.range_match?.start ?? 0);
    this.#to = BigInt(config.range_match?.end ?? 0);
    if (config.exact_match === '') this.#test = Test.AnyValue;
    else if (this.#text !== undefined) this.#test = Test.Text;
    else if (config.range_match !== undefined) this.#test = Test.Range;
    else this.#test = config.present_match === false ? Test.Absent : Test.Present;
  }

  matches(headers: HeaderView): boolean {
    switch (this.#source) {
      case Source.Method:
        return this.#matchesPart(headers, headers.methodStart, headers.methodEnd);
      case Source.Path:
        return this.#matchesPart(headers, headers.pathStart, headers.pathEnd);
      case Source.Status:
        return this.#matchesText(headers, headers.status === 0 ? '' : String(headers.status));
      case Source.Scheme:
        return this.#matchesText(headers, requestScheme(headers));
      default:
        return this.#matchesField(headers);
    }
  }

  /** Matches a part of the request line, which responses lack. */
  #matchesPart(headers: HeaderView, start: number, end: number): boolean {
    return start === end ? this.#matchesMissing(headers) : this.#matchesValue(headers, start, end);
  }

  /** Matches a text that is not in the head's bytes; '' means missing. */
  #matchesText(headers: HeaderView, text: string): boolean {
    if (text === '') return this.#matchesMissing(headers);
    const { memory } = headers;
    const start = memory.scratch(text.length);
    memory.write(start, text);
    const isMatch = this.#matchesValue(headers, start, start + text.length);
    // Many routes may evaluate this for one request.
    memory.withdrawScratch(start);
    return isMatch;
  }

  #matchesMissing(headers: HeaderView): boolean {
    if (this.#missingIsEmpty) return this.#matchesValue(headers, 0, 0);
    // An inverted rule does not match a missing header, unless it tests presence itself.
    return this.#test === Test.Present ? this.#isInverted : this.#test === Test.Absent && !this.#isInverted;
  }

  #matchesField(headers: HeaderView): boolean {
    const first = headers.find(this.#key);
    if (first < 0) return this.#matchesMissing(headers);
    const second = headers.findNext(this.#key, first);
    if (second < 0) return this.#matchesValue(headers, headers.valueStart(first), headers.valueEnd(first));
    return (this.#key.joinedIn & headers.kind) === 0 ? this.#matchesEach(headers, first) : this.#matchesJoined(headers);
  }

  /** Returns whether one of several values meets the condition; if inverted, whether none does. */
  #matchesEach(headers: HeaderView, first: number): boolean {
    for (let i = first; i >= 0; i = headers.findNext(this.#key, i)) {
      if (this.#holds(headers, headers.valueStart(i), headers.valueEnd(i))) return !this.#isInverted;
    }
    return this.#isInverted;
  }

  #matchesJoined(headers: HeaderView): boolean {
    const index = headers.findValue(this.#key);
    const isMatch = this.#matchesValue(headers, headers.valueStart(index), headers.valueEnd(index));
    // Many routes may evaluate this for one request.
    headers.withdrawValue(index);
    return isMatch;
  }

  #matchesValue(headers: HeaderView, start: number, end: number): boolean {
    return this.#holds(headers, start, end) !== this.#isInverted;
  }

  #holds(headers: HeaderView, start: number, end: number): boolean {
    switch (this.#test) {
      case Test.Text:
        return this.#text!.matches(headers.memory, start, end);
      case Test.Range:
        return this.#isInRange(headers.memory.text(start, end));
      case Test.Absent:
        return false;
      default:
        return true;
    }
  }

  #isInRange(text: string): boolean {
    if (text.length > MAX_INTEGER_CHARS || !/^[+-]?[0-9]+$/.test(text)) return false;
    const value = BigInt(text[0] === '+' ? text.slice(1) : text);
    return value >= this.#from && value < this.#to;
  }
}

/** Compiles a list of matchers. Returns undefined for an empty list. */
export function compileHeaderRules(
  configs: readonly HeaderMatcher[] | undefined,
  where: string,
): readonly HeaderRule[] | undefined {
  if (configs === undefined || configs.length === 0) return undefined;
  return configs.map((config, index) => new HeaderRule(config, `${where}[${index}]`));
}

/** Returns whether all rules match. */
export function matchesAll(rules: readonly HeaderRule[], headers: HeaderView): boolean {
  for (let i = 0; i < rules.length; i++) if (!rules[i]!.matches(headers)) return false;
  return true;
}

/** Returns whether any rule matches. */
export function matchesAny(rules: readonly HeaderRule[], headers: HeaderView): boolean {
  for (let i = 0; i < rules.length; i++) if (rules[i]!.matches(headers)) return true;
  return false;
}

/** A sign and the digits of an int64. */
const MAX_INTEGER_CHARS = 20;

function sourceOf(name: string): Source {
  switch (name) {
    case ':method':
      return Source.Method;
    case ':path':
      return Source.Path;
    case ':scheme':
      return Source.Scheme;
    case ':status':
      return Source.Status;
    default:
      return Source.Field;
  }
}

function textRule(config: HeaderMatcher, where: string): StringRule | undefined {
  if (config.string_match !== undefined) return compileStringMatcher(config.string_match, `${where}.string_match`);
  if (config.safe_regex_match !== undefined) {
    return regexRule(config.safe_regex_match.regex ?? '', `${where}.safe_regex_match.regex`);
  }
  if (config.exact_match !== undefined) return new StringRule(StringKind.Exact, config.exact_match);
  if (config.prefix_match !== undefined) return new StringRule(StringKind.Prefix, config.prefix_match);
  if (config.suffix_match !== undefined) return new StringRule(StringKind.Suffix, config.suffix_match);
  if (config.contains_match !== undefined) return new StringRule(StringKind.Contains, config.contains_match);
  return undefined;
}
