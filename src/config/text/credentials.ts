// Recognizes credentials that the API does not mark as sensitive: by name, by place and by format. docs/security.md describes
// the rules to users.

import type { Range } from './excerpt.js';

/** Replaces hidden values. */
export const REDACTED = '[redacted]';

/** Which parts of a value, and of its content, are hidden. */
export type Cover =
  | 'shown'
  /** Hides values that are next to a name, whatever the name. */
  | 'named'
  | 'hidden';

/** Fields that contain the name of a header, cookie, query parameter or descriptor, whose value is in a sibling. */
const LABELS = ['key', 'name', 'header_name', 'descriptor_key', 'tag'] as const;

/** Fields that contain or match the value for such a name. */
const VALUES = new Set([
  ...['value', 'raw_value', 'default_value', 'descriptor_value', 'literal'],
  ...['string_match', 'exact_match', 'prefix_match', 'suffix_match', 'contains_match', 'safe_regex_match'],
]);

/** Fields in which all values are hidden: metadata of gRPC services, cookies that a route matches. */
const ALL_VALUES = new Set(['initial_metadata', 'cookies']);

/** Endings of credential names, without word separators. A number may follow. */
const ENDINGS = [
  ...[
    'authorization',
    'cookie',
    'credential',
    'jwt',
    'passphrase',
    'passwd',
    'password',
    'secret',
    'sessionid',
    'token',
  ],
  ...['access', 'account', 'api', 'auth', 'encryption', 'functions', 'master', 'private', 'secret', 'shared'].map(
    asKey,
  ),
  ...['signing', 'subscription'].map(asKey),
  // Plurals. `tokens` alone is excluded, because it is often a number of tokens.
  ...['cookies', 'credentials', 'jwts', 'passwords', 'secrets', 'apikeys'],
  ...['accesstokens', 'apitokens', 'authtokens', 'bearertokens', 'refreshtokens'],
];
const ENDING = new RegExp(`(?:${ENDINGS.join('|')})\\d*$`);

/** Names that are too short, or too common as the ending of other names. */
const WHOLE_NAMES = new Set(['pass', 'pwd', 'xauth']);

/** This header only defines whether credentials may be sent. */
const NO_CREDENTIAL = new Set(['accesscontrolallowcredentials']);

/**
 * Returns whether a header, parameter or Struct member with this name contains a credential: `X-Api-Key`, `db_password`,
 * `authToken`.
 */
export function isCredentialName(name: string): boolean {
  let isOne = knownNames.get(name);
  if (isOne === undefined) {
    const plain = name
      .slice(-MAX_ENDING)
      .replace(/[^A-Za-z0-9]/g, '')
      .toLowerCase();
    isOne = (ENDING.test(plain) && !NO_CREDENTIAL.has(plain)) || WHOLE_NAMES.has(plain);
    if (knownNames.size >= MAX_KNOWN_NAMES) knownNames.clear();
    if (name.length <= MAX_KNOWN_LENGTH) knownNames.set(name, isOne);
  }
  return isOne;
}

/** Cache: a configuration has few names, each many times. */
const knownNames = new Map<string, boolean>();
const MAX_KNOWN_NAMES = 1000;
/** Number of characters at the end of a name that are inspected. */
const MAX_ENDING = 1000;
/** Names from outside can be of any length, and long ones are not cached. */
const MAX_KNOWN_LENGTH = 100;

/**
 * Returns whether the content of a map or list with this name is a credential. `cookie` is excluded: its content describes how
 * a cookie is made, and a string field of the API with that name contains the name of a cookie.
 */
export function coversContent(name: string): boolean {
  return isCredentialName(name) && !/cookies?$/i.test(name);
}

/** Returns whether a member with this name can contain the value for a name in a sibling. */
export function isNamedValue(name: string): boolean {
  return VALUES.has(name);
}

/** Returns whether one of the naming fields contains the name of a credential. */
export function namesCredential(fieldOf: (label: string) => unknown): boolean {
  return LABELS.some((label) => {
    const name = fieldOf(label);
    return typeof name === 'string' && isCredentialName(name);
  });
}

/** Returns whether a message with these fields can contain the name and the value of a credential. */
export function mayName(fields: ReadonlyMap<string, unknown>): boolean {
  return LABELS.some((label) => fields.has(label)) && [...VALUES].some((value) => fields.has(value));
}

/**
 * Returns what is hidden in a member.
 * @param name in snake_case
 * @param isCredential whether the member is a credential by its own name
 * @param isNamed whether the holder contains the name of a credential
 * @param cover the cover of the holder
 */
export function coverOf(name: string, isCredential: boolean, isNamed: boolean, cover: Cover): Cover {
  if (cover === 'hidden') return name === '@type' ? 'shown' : 'hidden';
  if (isCredential || ((isNamed || cover === 'named') && VALUES.has(name))) return 'hidden';
  return ALL_VALUES.has(name) ? 'named' : cover;
}

/** Returns what is shown of a hidden value: strings without secrets of their own, and booleans, are unchanged. */
export function shownOf(value: unknown): unknown {
  if (typeof value === 'string') return value === '' || ONLY_OPERATORS.test(value) ? value : REDACTED;
  return typeof value === 'number' || typeof value === 'bigint' ? REDACTED : value;
}

/** Command operators, such as `Bearer %REQ(x-token)%`, whose values are not in the configuration. */
const ONLY_OPERATORS = /^(?:(?:basic|bearer) +)?(?:%[A-Z][A-Z0-9_]*(?:\([^()%]*\))?(?::\d+)?%)+$/i;

/** Returns a text without credentials that can be recognized by format; the same text if there are none. */
export function withoutCredentials(text: string): string {
  if (!MAY_HOLD.test(text)) return text;
  let [shown, from] = ['', 0];
  for (const range of credentialRanges(text)) {
    shown += text.slice(from, range.from) + REDACTED;
    from = range.to;
  }
  return from === 0 ? text : shown + text.slice(from);
}

/** Returns whether a text that contains other texts may contain credentials. */
export function mayHoldCredentials(text: string): boolean {
  return SCHEME_WITHIN.test(text) || credentialRanges(text).length + parameterRanges(text).length > 0;
}

/** Returns whether a text in PEM form contains a private key. */
export function holdsPrivateKey(text: string): boolean {
  return PRIVATE_KEY.test(text);
}

/** Returns the ranges of credentials, in order. */
export function credentialRanges(text: string): Range[] {
  if (!MAY_HOLD.test(text)) return [];
  if (holdsPrivateKey(text)) return [{ from: 0, to: text.length }];
  const ranges = [...matches(text, USER_INFORMATION), ...matches(text, WEB_TOKEN)];
  const scheme = SCHEME.exec(text);
  if (scheme && LOOKS_RANDOM.test(scheme[1]!)) ranges.push({ from: text.length - scheme[1]!.length, to: text.length });
  if (/^\/|:\/\//.test(text)) ranges.push(...parameterRanges(text));
  ranges.sort((a, b) => a.from - b.from || b.to - a.to);
  let end = 0;
  return ranges.filter(({ from, to }) => {
    if (from < end) return false;
    end = to;
    return true;
  });
}

/** A fast check, since most texts contain no credentials. */
const MAY_HOLD = /[@?&]|eyJ|KEY-|^[Bb][AEae]/;
/** User information of a URI: the part before the last @ of the authority. */
const USER_INFORMATION = /(?<=:\/\/)[^\s/?#]+(?=@)/g;
const PRIVATE_KEY = /-----BEGIN [A-Z ]*PRIVATE KEY-/;
/** A JSON Web Token: three parts in base64url, of which the first two are JSON. */
const WEB_TOKEN = /(?<![\w-])eyJ[\w-]+\.eyJ[\w-]+\.[\w-]*/g;
/** HTTP credentials: what follows the scheme does not look like a word. */
const SCHEME = /^(?:basic|bearer) +([A-Za-z0-9._~+/-]{6,}=*)$/i;
const SCHEME_WITHIN = /\b(?:basic|bearer) +\S{6}/i;
const LOOKS_RANDOM = /[0-9=]|[a-z][A-Z]/;
const PARAMETER = /[?&]([\w.-]+)=([^&#\s]*)/g;

function parameterRanges(text: string): Range[] {
  const ranges: Range[] = [];
  for (const { 0: all, 1: name, 2: value, index } of text.matchAll(PARAMETER)) {
    const to = index + all.length;
    if (isCredentialName(name!) && shownOf(value) !== value) ranges.push({ from: to - value!.length, to });
  }
  return ranges;
}

function matches(text: string, pattern: RegExp): Range[] {
  return Array.from(text.matchAll(pattern), ({ 0: found, index }) => ({ from: index, to: index + found.length }));
}

function asKey(of: string): string {
  return `${of}key`;
}
