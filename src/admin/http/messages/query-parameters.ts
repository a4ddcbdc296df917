// The parameters of an admin request: from the URL, or from a form in the body.

import { runSync } from '../../../common/time/next-turn.js';

/** Parameters by name; of those that repeat, the first counts. */
export class QueryParameters {
  readonly #values: ReadonlyMap<string, string>;

  /** `values` in the order of the request. */
  constructor(values: ReadonlyMap<string, string>) {
    this.#values = values;
  }

  get isEmpty(): boolean {
    return this.#values.size === 0;
  }

  /** Whether a flag is set: its value does not count, `usedonly=false` sets it too. */
  has(name: string): boolean {
    return this.#values.has(name);
  }

  /** The value of a parameter; an empty one is as good as none. */
  get(name: string): string | undefined {
    return this.#values.get(name) || undefined;
  }

  /** All of them in the order of the request, empty values too. */
  entries(): Iterable<[string, string]> {
    return this.#values.entries();
  }
}

/** Pairs that are read in one step: about half a millisecond's work. */
const PER_STEP = 1000;

/** Reads what follows the '?' of a URL. A '+' stands for itself: filters are written as they are meant. */
export function parseQuery(query: string): QueryParameters {
  return runSync(parse(query));
}

/** Reads an application/x-www-form-urlencoded body, where '+' is a space, in steps: there may be a million bytes of it. */
export function parseForm(body: string): Generator<void, QueryParameters> {
  return parse(body.replaceAll('+', ' '));
}

function* parse(text: string): Generator<void, QueryParameters> {
  const values = new Map<string, string>();
  for (let from = 0, count = 1; from < text.length; count++) {
    const ampersand = text.indexOf('&', from);
    const to = ampersand < 0 ? text.length : ampersand;
    if (to > from) {
      const pair = text.slice(from, to);
      const equals = pair.indexOf('=');
      const name = decode(equals < 0 ? pair : pair.slice(0, equals));
      if (!values.has(name)) values.set(name, equals < 0 ? '' : decode(pair.slice(equals + 1)));
    }
    from = to + 1;
    if (count % PER_STEP === 0) yield;
  }
  return new QueryParameters(values);
}

/** What is no valid escape stands for itself; bytes that are no UTF-8 become U+FFFD. */
function decode(text: string): string {
  if (!text.includes('%')) return text;
  return text.replace(/(?:%[0-9a-fA-F]{2})+/g, (escapes) =>
    Buffer.from(escapes.replaceAll('%', ''), 'hex').toString('utf8'),
  );
}
