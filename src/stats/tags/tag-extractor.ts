// Extracts the tags of a stat's full name: default tags, tags that the configuration finds with expressions, and fixed tags.

import type { Tag, TaggedName } from '../tags.js';
import { DEFAULT_ROWS, GENERAL_ROWS, RESPONSE_CODE, RESPONSE_CODE_CLASS } from './default-rows.js';
import { RegexRule } from './regex-rule.js';
import { type Found, TokenPattern, Tokens } from './token-pattern.js';

/** A configured tag: a default by its name, one with an expression, or one with a fixed value. */
export interface TagSetting {
  readonly name: string;
  readonly regex?: string;
  readonly fixedValue?: string;
}

/** The response code or class at the end of a name, and the rest of the name. */
export interface CodeTail {
  readonly tag: Tag;
  readonly rest: string;
}

type Find = (tokens: Tokens) => Found | undefined;

interface Rule {
  readonly tag: string;
  readonly find: Find | undefined;
  /** Without `find`: the fixed value for all stats. */
  readonly value: string;
}

export class TagExtractor {
  /** Tokens of scopes whose stats may have different tags; see isByPrefix(). */
  readonly tokensBeforeEnd: ReadonlySet<string>;
  /** First tokens of names that expressions apply to; undefined: all names. */
  readonly #searched: Set<string> | undefined;
  readonly #always: Rule[] = [];
  /** Rules for names with a given first token. */
  readonly #byFirstToken = new Map<string, Rule[]>();
  readonly #repeated = new Set<string>();
  readonly #known = new Set<string>();
  readonly #codeTags = new Set<string>();

  /** @throws BatonError REGEX_INVALID */
  constructor(usesDefaults: boolean, settings: readonly TagSetting[]) {
    const ends = new Set<string>();
    if (usesDefaults) this.#addDefaults(ends, undefined);
    const searched = new Set<string>();
    // SectionTags requires that codes come first. If the configuration puts them after other tags, names are extracted as a
    // whole.
    let isSearchedAlways = false;
    for (const { name, regex, fixedValue } of settings) {
      if (fixedValue !== undefined) this.#add([''], { tag: name, find: undefined, value: fixedValue });
      else if (regex === undefined || regex === '') {
        if (name === RESPONSE_CODE || name === RESPONSE_CODE_CLASS) isSearchedAlways ||= !this.#startsWithCodes(name);
        this.#addDefaults(ends, name);
      } else {
        const rule = new RegexRule(regex);
        this.#add([rule.firstToken], { tag: name, find: ({ name: full }) => rule.find(full), value: '' });
        searched.add(rule.firstToken);
      }
    }
    this.#searched = isSearchedAlways || searched.has('') ? undefined : searched;
    this.tokensBeforeEnd = ends;
  }

  extract(name: string): TaggedName {
    const tokens = new Tokens(name);
    const tags: Tag[] = [];
    const cuts: Found[] = [];
    for (const rule of this.#always) this.#apply(rule, tokens, tags, cuts);
    if (tokens.texts.length > 1) {
      for (const rule of this.#byFirstToken.get(tokens.texts[0]!) ?? []) this.#apply(rule, tokens, tags, cuts);
    }
    return { name: cuts.length === 0 ? name : cutOut(name, cuts), tags };
  }

  /** Returns whether all names with this first token have the tags of their scope, apart from codes. */
  isByPrefix(firstToken: string): boolean {
    return this.#searched?.has(firstToken) === false;
  }

  /** Returns the code at the end of a stat's own name, if this extractor extracts codes. */
  codeTail(name: string): CodeTail | undefined {
    for (const tag of this.#codeTags) {
      const found = findCode(tag, name);
      if (found !== undefined) return { tag: { name: tag, value: found.value }, rest: cutOut(name, [found]) };
    }
    return undefined;
  }

  /** Adds all defaults, or those of one name. */
  #addDefaults(ends: Set<string>, only: string | undefined): void {
    for (const tag of [RESPONSE_CODE, RESPONSE_CODE_CLASS]) {
      if (only !== undefined && only !== tag) continue;
      this.#codeTags.add(tag);
      this.#add([''], { tag, find: ({ name }) => findCode(tag, name), value: '' });
    }
    for (const row of DEFAULT_ROWS) {
      const { tag, pattern, except } = row;
      if (only !== undefined && only !== tag) continue;
      const compiled = new TokenPattern(pattern, except);
      for (const token of compiled.tokensBeforeEnd ?? []) ends.add(token);
      const firstTokens = GENERAL_ROWS.includes(row) ? [''] : compiled.firstTokens;
      this.#add(firstTokens, { tag, find: (tokens) => compiled.find(tokens), value: '' });
    }
  }

  #startsWithCodes(tag: string): boolean {
    return this.#codeTags.has(tag) || this.#always.every((rule) => this.#codeTags.has(rule.tag));
  }

  /** '' stands for any first token. */
  #add(firstTokens: readonly string[], rule: Rule): void {
    if (this.#known.has(rule.tag)) this.#repeated.add(rule.tag);
    this.#known.add(rule.tag);
    for (const token of firstTokens) {
      if (token === '') this.#always.push(rule);
      else if (this.#byFirstToken.has(token)) this.#byFirstToken.get(token)!.push(rule);
      else this.#byFirstToken.set(token, [rule]);
    }
  }

  #apply({ tag, find, value }: Rule, tokens: Tokens, tags: Tag[], cuts: Found[]): void {
    // A name has each tag once: the first rule that matches wins.
    if (this.#repeated.has(tag) && tags.some((known) => known.name === tag)) return;
    if (find === undefined) {
      tags.push({ name: tag, value });
      return;
    }
    const found = find(tokens);
    if (found === undefined) return;
    tags.push({ name: tag, value: found.value });
    cuts.push(found);
  }
}

function findCode(tag: string, name: string): Found | undefined {
  const end = name.length;
  if (tag === RESPONSE_CODE) {
    if (!/_rq_\d{3}$/.test(name)) return undefined;
    return { value: name.slice(end - 3), from: end - 4, to: end };
  }
  if (!/_rq_\dxx$/.test(name)) return undefined;
  return { value: name.charAt(end - 3), from: end - 3, to: end - 2 };
}

/** Returns the name without these parts, which may overlap. */
function cutOut(name: string, cuts: readonly Found[]): string {
  const sorted = [...cuts].sort((a, b) => a.from - b.from);
  let rest = '';
  let at = 0;
  for (const { from, to } of sorted) {
    if (from > at) rest += name.slice(at, from);
    at = Math.max(at, to);
  }
  return rest + name.slice(at);
}
