// The parameters of an admin request, from the URL or from a form in the body.

import { runSync } from '../../../common/time/next-turn.js';

/** Parameters by name; if a name repeats, the first one counts, except in all(). */
export class QueryParameters {
  readonly #values: ReadonlyMap<string, string>;
  readonly #repeated: ReadonlyMap<string, readonly string[]>;

  /**
   * @param values in the order of the request
   * @param repeated the further values of names that repeat
   */
  constructor(values: ReadonlyMap<string, string>, repeated: ReadonlyMap<string, readonly string[]> = new Map()) {
    this.#values = values;
    this.#repeated = repeated;
  }

  get isEmpty(): boolean {
    return this.#values.size === 0;
  }

  /** Returns whether a flag is set. Its value does not count: `usedonly=false` sets it too. */
  has(name: string): boolean {
    return this.#values.has(name);
  }

  /** Returns the value of a parameter; undefined if it is absent or empty. */
  get(name: string): string | undefined {
    return this.#values.get(name) || undefined;
  }

  /** Returns all values of a parameter in the order of the request, including empty ones. */
  all(name: string): readonly string[] {
    const first = this.#values.get(name);
    return first === undefined ? [] : [first, ...(this.#repeated.get(name) ?? [])];
  }

  /** Returns all parameters in the order of the request, including empty ones. */
  entries(): Iterable<[string, string]> {
    return this.#values.entries();
  }
}

/** Pairs per step: about half a millisecond's work. */
const PER_STEP = 1000;

/** Parses the part of a URL after '?'. A '+' stays a plus sign, so that filters can be written literally. */
export function parseQuery(query: string): QueryParameters {
  return runSync(parse(query));
}

/** Parses an application/x-www-form-urlencoded body, where '+' is a space, in steps: it may have a million bytes. */
export function parseForm(body: string): Generator<void, QueryParameters> {
  return parse(body.replaceAll('+', ' '));
}

function* parse(text: string): Generator<void, QueryParameters> {
  const values = new Map<string, string>();
  const repeated = new Map<string, string[]>();
  for (let from = 0, count = 1; from < text.length; count++) {
    const ampersand = text.indexOf('&', from);
    const to = ampersand < 0 ? text.length : ampersand;
    if (to > from) {
      const pair = text.slice(from, to);
      const equals = pair.indexOf('=');
      const name = decode(equals < 0 ? pair : pair.slice(0, equals));
      const value = equals < 0 ? '' : decode(pair.slice(equals + 1));
      const further = repeated.get(name);
      if (further !== undefined) further.push(value);
      else if (values.has(name)) repeated.set(name, [value]);
      else values.set(name, value);
    }
    from = to + 1;
    if (count % PER_STEP === 0) yield;
  }
  return new QueryParameters(values, repeated);
}

/** Decodes escapes. Invalid escapes are kept; invalid UTF-8 becomes U+FFFD. */
function decode(text: string): string {
  if (!text.includes('%')) return text;
  return text.replace(/(?:%[0-9a-fA-F]{2})+/g, (escapes) =>
    Buffer.from(escapes.replaceAll('%', ''), 'hex').toString('utf8'),
  );
}
