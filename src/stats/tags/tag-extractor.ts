// Extracts the tags of a stat's full name: the default ones, those that configuration finds with expressions, and fixed ones.

import type { Tag, TaggedName } from '../tags.js';
import { DEFAULT_ROWS, GENERAL_ROWS, RESPONSE_CODE, RESPONSE_CODE_CLASS } from './default-rows.js';
import { RegexRule } from './regex-rule.js';
import { type Found, TokenPattern, Tokens } from './token-pattern.js';

/** A tag that configuration asks for: one of the defaults by its name, one with an expression, or one with a fixed value. */
export interface TagSetting {
  readonly name: string;
  readonly regex?: string;
  readonly fixedValue?: string;
}

/** The value of a name's response code or class, and what is left of the name. */
export interface CodeTail {
  readonly tag: Tag;
  readonly rest: string;
}

type Find = (tokens: Tokens) => Found | undefined;

interface Rule {
  readonly tag: string;
  readonly find: Find | undefined;
  /** Without `find`: the value of all stats. */
  readonly value: string;
}

export class TagExtractor {
  /** Tokens of a scope whose stats may each have tags of their own; see isByPrefix(). */
  readonly tokensBeforeEnd: ReadonlySet<string>;
  /** First tokens of names in which expressions look for tags; undefined: in all names. */
  readonly #searched: Set<string> | undefined;
  readonly #always: Rule[] = [];
  /** Rules for names that begin with a certain token. */
  readonly #byFirstToken = new Map<string, Rule[]>();
  readonly #repeated = new Set<string>();
  readonly #known = new Set<string>();
  readonly #codeTags = new Set<string>();

  /** @throws BatonError REGEX_INVALID */
  constructor(usesDefaults: boolean, settings: readonly TagSetting[]) {
    const ends = new Set<string>();
    if (usesDefaults) this.#addDefaults(ends, undefined);
    const searched = new Set<string>();
    // Of codes it is known elsewhere that they come first; where configuration puts them behind others, names are read whole.
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

  /** Whether names that begin with this token have the tags of their scope, save for codes, however they go on. */
  isByPrefix(firstToken: string): boolean {
    return this.#searched?.has(firstToken) === false;
  }

  /** The code at the end of a stat's own name, where this extractor looks for it. */
  codeTail(name: string): CodeTail | undefined {
    for (const tag of this.#codeTags) {
      const found = findCode(tag, name);
      if (found !== undefined) return { tag: { name: tag, value: found.value }, rest: cutOut(name, [found]) };
    }
    return undefined;
  }

  /** All defaults, or those of one name. */
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
    // A name has each tag once: the first rule that finds it wins.
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

/** The name without these parts, which may overlap. */
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
