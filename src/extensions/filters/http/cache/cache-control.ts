// Directives of cache-control (RFC 9111, section 5.2), and times of HTTP.

/** What a request asks of a cache. Times in seconds. */
export interface RequestDirectives {
  readonly mustValidate: boolean;
  readonly noStore: boolean;
  readonly maxAge: number | undefined;
  readonly minFresh: number | undefined;
  /** Infinity: any. */
  readonly maxStale: number | undefined;
}

/** What a response permits. Times in seconds. */
export interface ResponseDirectives {
  readonly mustValidate: boolean;
  readonly noStore: boolean;
  /** A stale response must not be sent, even if the request permits it. */
  readonly noStale: boolean;
  /** s-maxage, or else max-age. */
  readonly maxAge: number | undefined;
}

export const NO_DIRECTIVES: RequestDirectives = {
  mustValidate: false,
  noStore: false,
  maxAge: undefined,
  minFresh: undefined,
  maxStale: undefined,
};

/** `cacheControl`: the values of all fields; undefined: there is none, and `pragma` counts. */
export function requestDirectives(cacheControl: string | undefined, pragma: string | undefined): RequestDirectives {
  if (cacheControl === undefined)
    return pragma?.toLowerCase().includes('no-cache') === true
      ? { ...NO_DIRECTIVES, mustValidate: true }
      : NO_DIRECTIVES;
  const found = directivesIn(cacheControl);
  const maxStale = found.get('max-stale');
  return {
    mustValidate: found.has('no-cache'),
    noStore: found.has('no-store'),
    maxAge: seconds(found.get('max-age')),
    minFresh: seconds(found.get('min-fresh')),
    maxStale: maxStale === '' ? Number.POSITIVE_INFINITY : seconds(maxStale),
  };
}

export function responseDirectives(cacheControl: string | undefined): ResponseDirectives {
  const found = directivesIn(cacheControl ?? '');
  return {
    mustValidate: found.has('no-cache'),
    noStore: found.has('no-store') || found.has('private'),
    noStale: found.has('must-revalidate') || found.has('proxy-revalidate'),
    maxAge: seconds(found.get('s-maxage')) ?? seconds(found.get('max-age')),
  };
}

/** Returns the arguments of the directives by their names; '' without one. The first of several counts. */
function directivesIn(value: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const directive of value.split(',')) {
    const equals = directive.indexOf('=');
    const name = (equals < 0 ? directive : directive.slice(0, equals)).trim().toLowerCase();
    const argument = equals < 0 ? '' : directive.slice(equals + 1).trim();
    if (!found.has(name)) found.set(name, argument);
  }
  return found;
}

/** Returns undefined for what is no number of seconds. */
export function seconds(text: string | undefined): number | undefined {
  const digits = text === undefined ? undefined : /^"?(\d{1,12})"?$/.exec(text)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** Returns a time in milliseconds since 1970; undefined for what is no HTTP date (RFC 9110, section 5.6.7). */
export function httpTime(text: string | undefined): number | undefined {
  if (text === undefined || !/^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? [ -~]{15,40}$/.test(text)) return undefined;
  const time = Date.parse(/GMT$/.test(text) ? text : `${text} GMT`);
  return Number.isNaN(time) ? undefined : time;
}
