// Where the tokens of a provider are in a request: fields, query parameters and cookies.

import type { JwtProvider } from '../../../../config/generated/api.js';
import { type HeaderBlock, type HeaderKey, headerKey } from '../../../sdk.js';

/** A token, and where it was. */
export interface FoundToken {
  readonly text: string;
  /** Issuers whose providers have this location; undefined: any. */
  readonly issuers: ReadonlySet<string> | undefined;
  readonly location: Location;
}

interface Location {
  readonly kind: 'header' | 'parameter' | 'cookie';
  readonly name: string;
  readonly key: HeaderKey;
  readonly prefix: string;
  issuers: Set<string> | undefined;
}

const AUTHORIZATION = 'authorization';
const COOKIE = headerKey('cookie');
/** Each token may cost a verification. */
const MAX_TOKENS = 8;

export class Locations {
  readonly #headers: readonly Location[];
  readonly #parameters: readonly Location[];
  readonly #cookies: readonly Location[];

  constructor(providers: readonly JwtProvider[]) {
    const all = new Map<string, Location>();
    for (const provider of providers) for (const each of locationsOf(provider)) addTo(all, each, provider.issuer ?? '');
    // In the order of names, as in Envoy.
    const sorted = [...all].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, location]) => location);
    this.#headers = sorted.filter(({ kind }) => kind === 'header');
    this.#parameters = sorted.filter(({ kind }) => kind === 'parameter');
    this.#cookies = sorted.filter(({ kind }) => kind === 'cookie');
  }

  /** Returns the tokens of a request; undefined: there are too many to verify them all. */
  find(headers: HeaderBlock): FoundToken[] | undefined {
    const found: FoundToken[] = [];
    for (const location of this.#headers) findFields(headers, location, found);
    if (this.#parameters.length > 0) findParameters(headers, this.#parameters, found);
    if (this.#cookies.length > 0) findCookies(headers, this.#cookies, found);
    return found.length > MAX_TOKENS ? undefined : found;
  }
}

/** Removes a token from a request. Tokens in cookies stay, as in Envoy. */
export function removeToken(headers: HeaderBlock, { key, kind, name }: Location): void {
  if (kind === 'header') headers.remove(key);
  else if (kind === 'parameter') headers.setPath(withoutParameter(headers.pathText(), name));
}

function withoutParameter(path: string, name: string): string {
  const start = path.indexOf('?');
  const kept = path
    .slice(start + 1)
    .split('&')
    .filter((parameter) => unescaped(parameter.split('=', 1)[0]!) !== name);
  return path.slice(0, start) + (kept.length === 0 ? '' : `?${kept.join('&')}`);
}

function locationsOf({
  from_cookies = [],
  from_headers = [],
  from_params = [],
}: JwtProvider): Omit<Location, 'issuers'>[] {
  if (from_cookies.length + from_headers.length + from_params.length === 0)
    return [headerLocation(AUTHORIZATION, 'Bearer '), named('parameter', 'access_token')];
  return [
    ...from_headers.map(({ name = '', value_prefix: prefix = '' }) => headerLocation(name, prefix)),
    ...from_params.map((name) => named('parameter', name)),
    ...from_cookies.map((name) => named('cookie', name)),
  ];
}

function headerLocation(name: string, prefix: string): Omit<Location, 'issuers'> {
  return { kind: 'header', name: name.toLowerCase(), key: headerKey(name), prefix };
}

function named(kind: 'parameter' | 'cookie', name: string): Omit<Location, 'issuers'> {
  return { kind, name, key: COOKIE, prefix: '' };
}

function addTo(all: Map<string, Location>, location: Omit<Location, 'issuers'>, issuer: string): void {
  const id = `${location.kind} ${location.name}${location.prefix}`;
  const former = all.get(id);
  if (former === undefined) all.set(id, { ...location, issuers: issuer === '' ? undefined : new Set([issuer]) });
  else if (issuer === '') former.issuers = undefined;
  else former.issuers?.add(issuer);
}

function findFields(headers: HeaderBlock, location: Location, found: FoundToken[]): void {
  const { key } = location;
  const first = headers.find(key);
  // Lines of some fields are one value, as for every other reader.
  if (first >= 0 && (key.joinedIn & headers.kind) !== 0) addToken(headers.get(key) ?? '', location, found);
  else
    for (let index = first; index >= 0; index = headers.findNext(key, index))
      addToken(headers.value(index), location, found);
}

function addToken(value: string, location: Location, found: FoundToken[]): void {
  const { issuers, prefix } = location;
  const at = value.indexOf(prefix);
  if (at < 0) return;
  found.push({ text: prefix === '' ? value : tokenBehind(value, at + prefix.length), issuers, location });
}

/** As in Envoy, other characters may precede the token, and a value without any token is taken as it is. */
function tokenBehind(value: string, start: number): string {
  const at = value.slice(start).search(/[A-Za-z0-9_.-]/);
  return at < 0 ? value : value.slice(start + at);
}

function findParameters(headers: HeaderBlock, locations: readonly Location[], found: FoundToken[]): void {
  const path = headers.pathText();
  const start = path.indexOf('?');
  if (start < 0) return;
  const pairs = path.slice(start + 1).split('&');
  for (const location of locations) {
    const pair = pairs.find((each) => unescaped(each.split('=', 1)[0]!) === location.name);
    if (pair === undefined) continue;
    const at = pair.indexOf('=');
    found.push({ text: at < 0 ? '' : unescaped(pair.slice(at + 1)), issuers: location.issuers, location });
  }
}

function findCookies(headers: HeaderBlock, locations: readonly Location[], found: FoundToken[]): void {
  const cookies = new Map<string, string>();
  for (let index = headers.find(COOKIE); index >= 0; index = headers.findNext(COOKIE, index))
    for (const pair of headers.value(index).split(';')) {
      const at = pair.indexOf('=');
      const name = pair.slice(0, Math.max(at, 0)).trim();
      if (at > 0 && !cookies.has(name)) cookies.set(name, unquoted(pair.slice(at + 1).trim()));
    }
  for (const location of locations) {
    const text = cookies.get(location.name);
    if (text !== undefined) found.push({ text, issuers: location.issuers, location });
  }
}

function unquoted(value: string): string {
  return value.length > 1 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value;
}

/** Replaces %XX with its byte, and keeps invalid escapes. */
function unescaped(text: string): string {
  if (!text.includes('%')) return text;
  return text.replace(/%[0-9a-f]{2}/gi, (found) => String.fromCharCode(Number.parseInt(found.slice(1), 16)));
}
