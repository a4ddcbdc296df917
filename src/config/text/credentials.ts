// What is a credential though the API does not mark it as sensitive: by its name, by where it stands, by what it looks like.
// docs/security.md says the same to users.

import type { Range } from './excerpt.js';

/** Stands in the place of what is not shown. */
export const REDACTED = '[redacted]';

/** What is not to be shown of a value and of what is within it. */
export type Cover =
  | 'shown'
  /** Values that have a name beside them, whatever that is. */
  | 'named'
  | 'hidden';

/** Fields that name what is beside them: a header, a cookie, a query parameter, a descriptor. */
const LABELS = ['key', 'name', 'header_name', 'descriptor_key', 'tag'] as const;

/** Fields that hold, or match, what such a field names. */
const VALUES = new Set([
  ...['value', 'raw_value', 'default_value', 'descriptor_value', 'literal'],
  ...['string_match', 'exact_match', 'prefix_match', 'suffix_match', 'contains_match', 'safe_regex_match'],
]);

/** Fields of which all values are hidden: metadata of gRPC services, cookies that a route matches. */
const ALL_VALUES = new Set(['initial_metadata', 'cookies']);

/** How names of credentials end, without what separates their words. A number may follow. */
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
  // More than one of them. Of tokens it is a number as often.
  ...['cookies', 'credentials', 'jwts', 'passwords', 'secrets', 'apikeys'],
  ...['accesstokens', 'apitokens', 'authtokens', 'bearertokens', 'refreshtokens'],
];
const ENDING = new RegExp(`(?:${ENDINGS.join('|')})\\d*$`);

/** Names that are too short, or too common as the end of others. */
const WHOLE_NAMES = new Set(['pass', 'pwd', 'xauth']);

/** The header says only whether credentials may be sent. */
const NO_CREDENTIAL = new Set(['accesscontrolallowcredentials']);

/** Whether a header, a parameter or a member of a Struct of this name holds a credential: `X-Api-Key`, `db_password`, `authToken`. */
export function isCredentialName(name: string): boolean {
  let isOne = knownNames.get(name);
  if (isOne === undefined) {
    const plain = name.replace(/[^A-Za-z0-9]/g, '').toLowerCase();
    isOne = (ENDING.test(plain) && !NO_CREDENTIAL.has(plain)) || WHOLE_NAMES.has(plain);
    if (knownNames.size >= MAX_KNOWN_NAMES) knownNames.clear();
    if (name.length <= MAX_KNOWN_LENGTH) knownNames.set(name, isOne);
  }
  return isOne;
}

/** A configuration has few names, and each often. */
const knownNames = new Map<string, boolean>();
const MAX_KNOWN_NAMES = 1000;
/** A name from outside may be of any length, and would be kept. */
const MAX_KNOWN_LENGTH = 100;

/**
 * Whether what is within a map or a list of this name is a credential: what is within `cookie` says how one is made. Of a field of the API
 * that is a text it means the same: that names a cookie.
 */
export function coversContent(name: string): boolean {
  return isCredentialName(name) && !/cookies?$/i.test(name);
}

/** Whether a member of this name may hold what another member names. */
export function isNamedValue(name: string): boolean {
  return VALUES.has(name);
}

/** Whether one of the fields that name things names a credential. */
export function namesCredential(fieldOf: (label: string) => unknown): boolean {
  return LABELS.some((label) => {
    const name = fieldOf(label);
    return typeof name === 'string' && isCredentialName(name);
  });
}

/** Whether something with these fields may name a credential and hold it. */
export function mayName(fields: ReadonlyMap<string, unknown>): boolean {
  return LABELS.some((label) => fields.has(label)) && [...VALUES].some((value) => fields.has(value));
}

/**
 * What is hidden of a member.
 * @param name in snake_case
 * @param isCredential whether it is one by its own name
 * @param isNamed whether the holder names a credential
 * @param cover of the holder
 */
export function coverOf(name: string, isCredential: boolean, isNamed: boolean, cover: Cover): Cover {
  if (cover === 'hidden') return name === '@type' ? 'shown' : 'hidden';
  if (isCredential || ((isNamed || cover === 'named') && VALUES.has(name))) return 'hidden';
  return ALL_VALUES.has(name) ? 'named' : cover;
}

/** What is shown of a value that is covered: texts that hold no secret of their own as they are, and what is true or false. */
export function shownOf(value: unknown): unknown {
  if (typeof value === 'string') return value === '' || ONLY_OPERATORS.test(value) ? value : REDACTED;
  return typeof value === 'number' || typeof value === 'bigint' ? REDACTED : value;
}

/** Command operators, such as `Bearer %REQ(x-token)%`: what they stand for is not in the configuration. */
const ONLY_OPERATORS = /^(?:(?:basic|bearer) +)?(?:%[A-Z][A-Z0-9_]*(?:\([^()%]*\))?(?::\d+)?%)+$/i;

/** A text without credentials that can be told by their looks; the same where it has none. */
export function withoutCredentials(text: string): string {
  if (!MAY_HOLD.test(text)) return text;
  let [shown, from] = ['', 0];
  for (const range of credentialRanges(text)) {
    shown += text.slice(from, range.from) + REDACTED;
    from = range.to;
  }
  return from === 0 ? text : shown + text.slice(from);
}

/** Whether they may stand somewhere in a text that has other texts in it. */
export function mayHoldCredentials(text: string): boolean {
  return SCHEME_WITHIN.test(text) || credentialRanges(text).length + parameterRanges(text).length > 0;
}

/** Where they stand, one after the other. */
export function credentialRanges(text: string): Range[] {
  if (!MAY_HOLD.test(text)) return [];
  if (PRIVATE_KEY.test(text)) return [{ from: 0, to: text.length }];
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

/** Most texts hold nothing of the kind, which has to cost little. */
const MAY_HOLD = /[@?&]|eyJ|KEY-|^[Bb][AEae]/;
/** Of a URI: what stands before the last @ of its authority. */
const USER_INFORMATION = /(?<=:\/\/)[^\s/?#]+(?=@)/g;
const PRIVATE_KEY = /-----BEGIN [A-Z ]*PRIVATE KEY-/;
/** Three parts in base64url, of which the first two are JSON. */
const WEB_TOKEN = /(?<![\w-])eyJ[\w-]+\.eyJ[\w-]+\.[\w-]*/g;
/** Credentials of HTTP: what follows is no word of a sentence. */
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
