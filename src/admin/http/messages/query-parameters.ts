// The parameters of an admin request: from the URL, or from a form in the body.

/** Parameters by name; of those that repeat, the first counts. */
export class QueryParameters {
  readonly #values: ReadonlyMap<string, string>;

  /** `entries` in the order of the request. */
  constructor(entries: Iterable<readonly [string, string]>) {
    const values = new Map<string, string>();
    for (const [name, value] of entries) if (!values.has(name)) values.set(name, value);
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

/** Reads what follows the '?' of a URL. A '+' stands for itself: filters are written as they are meant. */
export function parseQuery(query: string): QueryParameters {
  return new QueryParameters(split(query));
}

/** Reads an application/x-www-form-urlencoded body, where '+' is a space. */
export function parseForm(body: string): QueryParameters {
  return new QueryParameters(split(body.replaceAll('+', ' ')));
}

function* split(text: string): Generator<[string, string], void> {
  for (const pair of text.split('&')) {
    if (pair === '') continue;
    const equals = pair.indexOf('=');
    yield equals < 0 ? [decode(pair), ''] : [decode(pair.slice(0, equals)), decode(pair.slice(equals + 1))];
  }
}

/** What is no valid escape stands for itself; bytes that are no UTF-8 become U+FFFD. */
function decode(text: string): string {
  if (!text.includes('%')) return text;
  return text.replace(/(?:%[0-9a-fA-F]{2})+/g, (escapes) =>
    Buffer.from(escapes.replaceAll('%', ''), 'hex').toString('utf8'),
  );
}
