// A matcher (xds.type.matcher.v3.Matcher), compiled: finds an action for a request or a connection.

import type {
  Any,
  CelExpression,
  CelMatcher,
  IPMatcher,
  MatcherMatcher as Matcher,
  MatcherStringMatcher,
  MatcherMatcher_OnMatch as OnMatch,
  MatcherMatcher_MatcherList_Predicate as PredicateConfig,
  MatcherMatcher_MatcherTree as TreeConfig,
} from '../../../../config/generated/api.js';
import {
  BatonError,
  compileStringMatcher,
  compileValueMatcher,
  expressionOfMatcher,
  type IpRange,
  ipRange,
  isInRange,
  messageOf,
  parseIp,
  type StreamExpression,
  type StreamInfo,
  unpack,
} from '../../../sdk.js';
import { IpPredicate } from './ip-predicate.js';
import { ATTRIBUTES_INPUT, compileInput, type Matched, type MatchedKind, type MatchInput } from './matcher-inputs.js';

/** Finds an action; undefined: nothing matches. */
export interface MatchTree<A> {
  find(matched: Matched): A | undefined;
}

/** Builds the actions of a matcher. */
export interface MatchBuilder<A> extends MatchedKind {
  action(config: Any, where: string): A;
}

interface Predicate {
  holds(matched: Matched): boolean;
}

/** Compiles a matcher. `where`: its path. Throws a BatonError if it cannot be compiled. */
export function compileMatcher<A>(config: Matcher, where: string, builder: MatchBuilder<A>): MatchTree<A> {
  const { matcher_list: list, matcher_tree: tree, on_no_match: otherwise } = config;
  const fallback = otherwise && compileOnMatch(otherwise, `${where}.on_no_match`, builder);
  const main =
    tree === undefined
      ? matcherList(list?.matchers ?? [], where, builder)
      : matcherTree(tree, `${where}.matcher_tree`, builder);
  return { find: (matched) => main.find(matched) ?? fallback?.find(matched) };
}

function compileOnMatch<A>(config: OnMatch, where: string, builder: MatchBuilder<A>): MatchTree<A> {
  if (config.keep_matching === true)
    throw new BatonError('CONFIG_INVALID', 'keep_matching is not supported in this context', {
      where: `${where}.keep_matching`,
    });
  if (config.matcher !== undefined) return compileMatcher(config.matcher, `${where}.matcher`, builder);
  const action = builder.action(config.action!.typed_config!, `${where}.action.typed_config`);
  return { find: () => action };
}

type FieldMatchers = NonNullable<NonNullable<Matcher['matcher_list']>['matchers']>;

/** The first predicate that holds decides; if its matcher finds nothing, the following ones are tried. */
function matcherList<A>(configs: FieldMatchers, where: string, builder: MatchBuilder<A>): MatchTree<A> {
  const list = configs.map(({ on_match, predicate }, index) => {
    const at = `${where}.matcher_list.matchers[${index}]`;
    return {
      predicate: compilePredicate(predicate!, `${at}.predicate`, builder),
      onMatch: compileOnMatch(on_match!, `${at}.on_match`, builder),
    };
  });
  return {
    find(matched) {
      for (const { onMatch, predicate } of list) {
        const found = predicate.holds(matched) ? onMatch.find(matched) : undefined;
        if (found !== undefined) return found;
      }
      return undefined;
    },
  };
}

function compilePredicate(config: PredicateConfig, where: string, kind: MatchedKind): Predicate {
  const { and_matcher: all, not_matcher: not, or_matcher: any, single_predicate: single } = config;
  const inner = (list: readonly PredicateConfig[] | undefined, name: string) =>
    (list ?? []).map((each, index) => compilePredicate(each, `${where}.${name}.predicate[${index}]`, kind));
  if (all !== undefined) {
    const predicates = inner(all.predicate, 'and_matcher');
    return { holds: (matched) => predicates.every((each) => each.holds(matched)) };
  }
  if (any !== undefined) {
    const predicates = inner(any.predicate, 'or_matcher');
    return { holds: (matched) => predicates.some((each) => each.holds(matched)) };
  }
  if (not !== undefined) {
    const predicate = compilePredicate(not, `${where}.not_matcher`, kind);
    return { holds: (matched) => !predicate.holds(matched) };
  }
  const at = `${where}.single_predicate`;
  const input = compileInput(single!.input?.typed_config, `${at}.input`, kind);
  const custom = single!.custom_match?.typed_config;
  if (custom !== undefined) return customPredicate(custom, input, `${at}.custom_match`);
  const rule = compileStringMatcher(textMatcher(single!.value_match!), `${at}.value_match`);
  return {
    holds(matched) {
      const text = input.text(matched);
      return text !== undefined && rule.matchesText(text);
    },
  };
}

/** Compiles a matcher that is an extension. */
function customPredicate(config: Any, input: MatchInput, where: string): Predicate {
  const at = `${where}.typed_config`;
  const address = unpack(config, 'envoy.extensions.matching.input_matchers.ip.v3.Ip');
  if (address !== undefined) return new IpPredicate(address, input, at);
  const cel = unpack(config, 'xds.type.matcher.v3.CelMatcher');
  if (cel !== undefined) return expressionPredicate(cel, input, at);
  const { invert = false, value } = config as unknown as {
    invert?: boolean;
    value: Parameters<typeof compileValueMatcher>[0];
  };
  const metadataOf = input.value;
  if (metadataOf === undefined)
    throw new BatonError('CONFIG_INVALID', 'the matcher of metadata needs the input of dynamic metadata', { where });
  const rule = compileValueMatcher(value, `${at}.value`);
  return { holds: (matched) => rule.matches(metadataOf(matched)) !== invert };
}

function expressionPredicate({ expr_match: config = {} }: CelMatcher, input: MatchInput, where: string): Predicate {
  if (input !== ATTRIBUTES_INPUT)
    throw new BatonError('CONFIG_INVALID', 'the matcher of expressions needs the input of attributes', { where });
  const { evaluate } = compiledExpression(config, `${where}.expr_match`);
  // The input is for requests only, whose whole stream is passed. As in Envoy, an error is not true.
  return { holds: ({ info }) => evaluate(info as StreamInfo) === true };
}

function compiledExpression(config: CelExpression, where: string): StreamExpression {
  try {
    return expressionOfMatcher(config);
  } catch (error) {
    throw new BatonError('CONFIG_INVALID', messageOf(error), { where, cause: error });
  }
}

/** xds.type.matcher.v3.StringMatcher has the fields of Envoy's own. */
function textMatcher({
  safe_regex: regex,
  ...others
}: MatcherStringMatcher): Parameters<typeof compileStringMatcher>[0] {
  return (regex === undefined ? others : { safe_regex: { regex: regex.regex! } }) as Parameters<
    typeof compileStringMatcher
  >[0];
}

function matcherTree<A>(config: TreeConfig, where: string, builder: MatchBuilder<A>): MatchTree<A> {
  const input = compileInput(config.input?.typed_config, `${where}.input`, builder);
  const { custom_match: custom, exact_match_map: exact, prefix_match_map: prefixes } = config;
  const entries = Object.entries(exact?.map ?? prefixes?.map ?? {}).map(([key, onMatch]) => {
    const at = `${where}.${exact === undefined ? 'prefix' : 'exact'}_match_map.map[${JSON.stringify(key)}]`;
    return [key, compileOnMatch(onMatch, at, builder)] as const;
  });
  if (custom !== undefined) {
    const ranges = ipRanges(custom.typed_config as unknown as IPMatcher, `${where}.custom_match.typed_config`, builder);
    return { find: (matched) => findInRanges(ranges, input.text(matched), matched) };
  }
  if (exact !== undefined) {
    const map = new Map(entries);
    return { find: (matched) => map.get(input.text(matched) ?? '\0')?.find(matched) };
  }
  // The longest prefix first; as in Envoy, a shorter one applies where its matcher finds nothing.
  const sorted = entries.toSorted(([a], [b]) => b.length - a.length);
  return {
    find(matched) {
      const text = input.text(matched);
      if (text === undefined) return undefined;
      for (const [prefix, onMatch] of sorted) {
        const found = text.startsWith(prefix) ? onMatch.find(matched) : undefined;
        if (found !== undefined) return found;
      }
      return undefined;
    },
  };
}

interface RangeMatch<A> {
  readonly range: IpRange;
  readonly bits: number;
  readonly onMatch: MatchTree<A>;
  /** It does not apply where a more specific range has the address too. */
  readonly isExclusive: boolean;
}

/** The most specific ranges first. */
function ipRanges<A>({ range_matchers = [] }: IPMatcher, where: string, builder: MatchBuilder<A>): RangeMatch<A>[] {
  const matches = range_matchers.flatMap(({ exclusive = false, on_match, ranges = [] }, index) => {
    const at = `${where}.range_matchers[${index}]`;
    const onMatch = compileOnMatch(on_match!, `${at}.on_match`, builder);
    return ranges.map(({ address_prefix: prefix = '', prefix_len: bits = 0 }, place) => {
      const range = ipRange(prefix, bits);
      if (range === undefined)
        throw new BatonError('CONFIG_INVALID', `malformed IP address: ${prefix}`, {
          where: `${at}.ranges[${place}].address_prefix`,
        });
      return { range, bits, onMatch, isExclusive: exclusive };
    });
  });
  return matches.sort((a, b) => b.bits - a.bits);
}

function findInRanges<A>(ranges: readonly RangeMatch<A>[], text: string | undefined, matched: Matched): A | undefined {
  const ip = text === undefined ? undefined : parseIp(text.replace(/%.*/, ''));
  if (ip === undefined) return undefined;
  let isFirst = true;
  for (const { isExclusive, onMatch, range } of ranges) {
    if (!isInRange(range, ip)) continue;
    const found = isExclusive && !isFirst ? undefined : onMatch.find(matched);
    if (found !== undefined) return found;
    isFirst = false;
  }
  return undefined;
}
