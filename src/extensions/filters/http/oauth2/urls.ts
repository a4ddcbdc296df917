// URLs, query strings and percent-encoding as the filter needs them. All texts have one character for each byte.

/** The parts of an absolute URL. */
export interface AbsoluteUrl {
  readonly scheme: string;
  /** Without user information, with the port. */
  readonly authority: string;
  /** Lower case, without port and brackets. */
  readonly host: string;
  /** Path and query, at least '/'. */
  readonly target: string;
}

/** The authority has only characters that RFC 3986 allows: browsers read a backslash as a slash, and would go to another host. */
const URL =
  /^([a-z][a-z0-9+.-]*):\/\/(?:[\w.~!*'();:&=+$,%-]*@)?(\[[\da-f:.]+\]|[\w.-]+)(:\d{1,5})?([/?][^#]*)?(?:#.*)?$/i;
const ALLOWED = /^[\x21-\x7e\x80-\xff]*$/;

/** Parses an absolute URL; undefined: the text is not one. */
export function parseUrl(text: string): AbsoluteUrl | undefined {
  const [, scheme, name, port = '', target = ''] = (ALLOWED.test(text) && URL.exec(text)) || [];
  if (scheme === undefined || name === undefined) return undefined;
  return {
    scheme,
    authority: name + port,
    host: name.replace(/^\[|\]$/g, '').toLowerCase(),
    target: target.startsWith('/') ? target : `/${target}`,
  };
}

/** Returns whether the URL's host is one of `domains`, of which `*.a.b` includes all hosts below. No domain: all are. */
export function isAllowed(url: string, domains: readonly string[]): boolean {
  if (domains.length === 0) return true;
  const host = parseUrl(url)?.host;
  if (host === undefined) return false;
  return domains.some((domain) => {
    const name = domain.toLowerCase();
    return name.startsWith('*.') ? host.endsWith(name.slice(1)) && host.length >= name.length : host === name;
  });
}

/** The parameters of a query string, undecoded, in order of their names. */
export class QueryParameters {
  readonly #values: Map<string, string[]>;

  private constructor(values: Map<string, string[]>) {
    this.#values = values;
  }

  /** Parses those of a URL or of a path with query. */
  static of(url: string): QueryParameters {
    const values = new Map<string, string[]>();
    const start = url.indexOf('?');
    if (start < 0 || start === url.length - 1) return new QueryParameters(values);
    for (const part of url.slice(start + 1).split('&')) {
      const equals = part.indexOf('=');
      const name = equals < 0 ? part : part.slice(0, equals);
      const value = equals < 0 ? '' : part.slice(equals + 1);
      const known = values.get(name);
      if (known === undefined) values.set(name, [value]);
      else known.push(value);
    }
    return new QueryParameters(values);
  }

  first(name: string): string | undefined {
    return this.#values.get(name)?.[0];
  }

  /** Returns these parameters with others in place of those of the same names. */
  with(others: Readonly<Record<string, string>>): QueryParameters {
    const values = new Map(this.#values);
    for (const [name, value] of Object.entries(others)) values.set(name, [value]);
    return new QueryParameters(values);
  }

  /** With its question mark; '' without parameters. */
  toString(): string {
    const names = [...this.#values.keys()].sort(byBytes);
    const pairs = names.flatMap((name) => this.#values.get(name)!.map((value) => `${name}=${value}`));
    return pairs.length === 0 ? '' : `?${pairs.join('&')}`;
  }
}

/** Encodes a value of a query: all but letters, digits and `*-._`. */
export function encodeQueryValue(text: string): string {
  return text.replace(/[^A-Za-z0-9*\-._]/g, percent);
}

/** Encodes a value of a form. As in Envoy, only some characters: `%` and space are not among them. */
export function encodeFormValue(text: string): string {
  return text.replace(/[\0-\x1f~-\xff:/=&?+]/g, percent);
}

function percent(char: string): string {
  return `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;
}

function byBytes(one: string, other: string): number {
  return one < other ? -1 : Number(one > other);
}
