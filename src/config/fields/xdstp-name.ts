// Names of the form xdstp://authority/type/path?parameters, and the glob collections that contain them.

export interface XdstpName {
  readonly authority: string;
  /** Full name of the message. */
  readonly type: string;
  readonly path: string;
  /** Context parameters, decoded. */
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
  return { authority: authority!, type, path: path ?? '', parameters: parametersOf(query) };
}

/** Returns the name with its parameters in order. They are encoded as Envoy encodes them. */
export function formatXdstp({ authority, parameters, path, type }: XdstpName): string {
  const sorted = [...parameters].sort(([a], [b]) => (a < b ? -1 : 1));
  const query = sorted.map(([key, value]) => `${encoded(key)}=${encoded(value)}`).join('&');
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
    parameters.set(decoded(key!), decoded(value.join('=')));
  }
  return parameters;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Encodes characters with a meaning in parameters, and those that are not printable ASCII. */
function encoded(text: string): string {
  if (/^[ !"$'-<>-Z\\^-}]*$/.test(text)) return text;
  return Array.from(Buffer.from(text), (byte) => {
    const character = String.fromCharCode(byte);
    return byte < 0x20 || byte >= 0x7e || RESERVED.has(character)
      ? `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
      : character;
  }).join('');
}

const RESERVED: ReadonlySet<string> = new Set('%#[]&=');
