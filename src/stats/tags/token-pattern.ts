// The compiled pattern of a default tag: finds the value in a name split into tokens.

import { VALUES } from './default-rows.js';

/** A name, and the position of each of its tokens. */
export class Tokens {
  readonly name: string;
  readonly texts: readonly string[];
  readonly starts: readonly number[];

  constructor(name: string) {
    this.name = name;
    this.texts = name.split('.');
    let start = 0;
    this.starts = this.texts.map((text) => {
      const at = start;
      start += text.length + 1;
      return at;
    });
  }

  end(token: number): number {
    return this.starts[token]! + this.texts[token]!.length;
  }
}

/** The value and the part of the name that is removed with it. */
export interface Found {
  readonly value: string;
  readonly from: number;
  readonly to: number;
}

type Value = keyof typeof VALUES;

interface Element {
  readonly kind: 'any' | 'one-of' | 'some' | 'rest' | 'address' | 'value';
  readonly texts: readonly string[];
  readonly value: Value;
  /** For a value: the text before it in its token. */
  readonly before: string;
  readonly takesDotBefore: boolean;
  readonly takesFromHere: boolean;
}

export class TokenPattern {
  readonly #elements: readonly Element[];
  readonly #except: string | undefined;

  constructor(pattern: string, except?: string) {
    this.#elements = pattern.split('.').map(elementOf);
    this.#except = except;
  }

  /** The possible first tokens of a name; empty if any is possible. */
  get firstTokens(): readonly string[] {
    return this.#elements[0]!.texts;
  }

  /**
   * Undefined if the pattern matches any last token of letters, digits and underscores; else the tokens of which a name must
   * contain one before its last token for the pattern to match.
   */
  get tokensBeforeEnd(): readonly string[] | undefined {
    const last = this.#elements.at(-1)!.kind;
    if (last === 'any' || last === 'rest') return undefined;
    return this.#elements.slice(0, -1).findLast((element) => element.kind === 'one-of')!.texts;
  }

  find(tokens: Tokens): Found | undefined {
    return this.#findFrom(tokens, 0, 0, undefined, -1);
  }

  #findFrom(tokens: Tokens, first: number, at: number, found: Found | undefined, from: number): Found | undefined {
    const { texts } = tokens;
    const elements = this.#elements;
    for (let i = first; i < elements.length; i++) {
      const element = elements[i]!;
      if (at >= texts.length) return undefined;
      if (element.takesFromHere) from = tokens.starts[at]!;
      switch (element.kind) {
        case 'any':
          at++;
          break;
        case 'one-of':
          if (!element.texts.includes(texts[at]!)) return undefined;
          at++;
          break;
        case 'address':
          at += addressTokens(texts, at);
          break;
        case 'rest':
          return found;
        case 'some':
          for (at++; at < texts.length; at++) {
            const match = this.#findFrom(tokens, i + 1, at, found, from);
            if (match !== undefined) return match;
          }
          return undefined;
        case 'value': {
          const count = valueTokens(element.value, texts, at, elements.length - i - 1);
          found = this.#valueAt(tokens, element, at, count, from);
          if (found === undefined) return undefined;
          at += count;
        }
      }
    }
    return at === texts.length ? found : undefined;
  }

  #valueAt(tokens: Tokens, element: Element, at: number, count: number, from: number): Found | undefined {
    const last = at + count - 1;
    if (count < 1 || last >= tokens.texts.length || !tokens.texts[at]!.startsWith(element.before)) return undefined;
    const start = tokens.starts[at]!;
    const end = tokens.end(last);
    const text = tokens.name.slice(start + element.before.length, end);
    const value = element.value === 'endpoint' ? endpointAddress(text) : text;
    if (value === '' || value === this.#except || VALUES[element.value]?.test(value) === false) return undefined;
    const isEnd = end === tokens.name.length;
    if (element.takesDotBefore) return { value, from: start - 1, to: end };
    if (from >= 0) return { value, from, to: end + 1 };
    // For a worker only the number is removed. A value that fills its token is removed with the token's dot.
    if (element.value === 'digits') return { value, from: start + element.before.length, to: end + 1 };
    return isEnd ? { value, from: start - 1, to: end } : { value, from: start, to: end + 1 };
  }
}

function elementOf(token: string): Element {
  const base = { texts: [], value: '', before: '', takesDotBefore: false, takesFromHere: false } as const;
  if (token.startsWith('~')) return { ...elementOf(token.slice(1)), takesFromHere: true };
  if (token === '*') return { ...base, kind: 'any' };
  if (token === '+') return { ...base, kind: 'some' };
  if (token === '**') return { ...base, kind: 'rest' };
  if (token === '@') return { ...base, kind: 'address' };
  const dollar = token.indexOf('$');
  if (dollar < 0) return { ...base, kind: 'one-of', texts: token.split('|') };
  const before = token.slice(0, dollar);
  const value = token.slice(dollar + 1) as Value;
  if (before === '-') return { ...base, kind: 'value', value, takesDotBefore: true };
  return { ...base, kind: 'value', value, before };
}

/** Returns `127.0.0.1:80` for `127.0.0.1_80`, `[::1]:80` for `[__1]_80`; the path of a Unix socket is unchanged. */
function endpointAddress(text: string): string {
  if (/^\[[\da-f_.]+\]_\d+$/.test(text)) return text.replaceAll('_', ':');
  return text.replace(/^(\d+\.\d+\.\d+\.\d+)_(\d+)$/, '$1:$2');
}

/** Returns how many tokens a value takes if `following` elements follow it. */
function valueTokens(value: Value, texts: readonly string[], at: number, following: number): number {
  if (value === 'tls') return 2;
  if (value === 'address') return addressTokens(texts, at);
  if (value === 'path' || value === 'endpoint') return texts.length - at - following;
  return 1;
}

/**
 * Returns the number of tokens of an address. 127.0.0.1_10000 is four tokens; an IPv6 address, whose colons became
 * underscores, is one, as any name.
 */
function addressTokens(texts: readonly string[], at: number): number {
  if (at + 4 >= texts.length || !/^\d{1,3}_\d+$/.test(texts[at + 3]!)) return 1;
  for (let i = at; i < at + 3; i++) if (!/^\d{1,3}$/.test(texts[i]!)) return 1;
  return 4;
}
