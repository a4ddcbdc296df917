// Names of the form xdstp://authority/type/path?parameters, and the glob collections that contain them.

/** The parts of a name, escaped as Envoy escapes them. */
export interface XdstpName {
  readonly authority: string;
  /** Full name of the message. */
  readonly type: string;
  readonly path: string;
  /** Context parameters. */
  readonly parameters: ReadonlyMap<string, string>;
}

const SCHEME = 'xdstp:';
const NAME = /^xdstp:\/\/([^/?#]*)\/([^/?#]+)(?:\/([^?#]*))?(?:\?([^#]*))?$/;

export function isXdstp(name: string): boolean {
  return name.startsWith(SCHEME);
}

/** Returns undefined for another name, and for one with directives after a '#'. */
export function parseXdstp(name: string): XdstpName | undefined {
  const [, authority, type, path, query] = NAME.exec(name) ?? [];
  if (type === undefined) return undefined;
  return {
    authority: escaped(authority!, AUTHORITY_RESERVED),
    type,
    path: escaped(path ?? '', PATH_RESERVED),
    parameters: parametersOf(query),
  };
}

/** Returns the name with its parameters in order. */
export function formatXdstp({ authority, parameters, path, type }: XdstpName): string {
  const sorted = [...parameters].sort(([a], [b]) => (a < b ? -1 : 1));
  const query = sorted.map(([key, value]) => `${key}=${value}`).join('&');
  return `${SCHEME}//${authority}/${type}${path === '' ? '' : `/${path}`}${query === '' ? '' : `?${query}`}`;
}

/** Returns whether the name is that of all resources of a folder. */
export function isGlob({ path }: XdstpName): boolean {
  return path === '*' || path.endsWith('/*');
}

/** Returns the form of a name in which equal names are equal. */
export function canonicalXdstp(name: string): string {
  const parsed = isXdstp(name) ? parseXdstp(name) : undefined;
  return parsed === undefined ? name : formatXdstp(parsed);
}

/** Returns the canonical name of the glob collection that contains the resource; undefined for a name that is not of this form. */
export function collectionOf(name: string): string | undefined {
  const parsed = parseXdstp(name);
  if (parsed === undefined) return undefined;
  return formatXdstp({ ...parsed, path: `${parsed.path.slice(0, parsed.path.lastIndexOf('/') + 1)}*` });
}

function parametersOf(query: string | undefined): Map<string, string> {
  const parameters = new Map<string, string>();
  for (const part of query === undefined || query === '' ? [] : query.split('&')) {
    const [key, ...value] = part.split('=');
    const name = parameterText(key!);
    // As in Envoy, the first one counts.
    if (!parameters.has(name)) parameters.set(name, parameterText(value.join('=')));
  }
  return parameters;
}

/** Escapes the text of a parameter: what has a meaning in parameters, and what is not printable ASCII. Escapes in the text stay. */
export function parameterText(text: string): string {
  return escaped(text, PARAMETER_RESERVED);
}

/** Returns the text with exactly the necessary escapes. They may stand for bytes that are no UTF-8. */
function escaped(text: string, reserved: ReadonlySet<number>): string {
  if (/^[\w.,:;*+@!$'() -]*$/.test(text)) return text;
  const bytes = Buffer.from(text);
  let result = '';
  for (let at = 0; at < bytes.length; at++) {
    let byte = bytes[at]!;
    if (byte === PERCENT) {
      const digits = bytes.toString('latin1', at + 1, at + 3);
      if (/^[\da-f]{2}$/i.test(digits)) {
        byte = Number.parseInt(digits, 16);
        at += 2;
      }
    }
    const isPlain = byte >= 0x20 && byte < 0x7e && !reserved.has(byte);
    result += isPlain ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return result;
}

const PERCENT = 0x25;
const AUTHORITY_RESERVED: ReadonlySet<number> = new Set(Buffer.from('%/?#'));
const PATH_RESERVED: ReadonlySet<number> = new Set(Buffer.from('%?#[]'));
const PARAMETER_RESERVED: ReadonlySet<number> = new Set(Buffer.from('%#[]&='));
