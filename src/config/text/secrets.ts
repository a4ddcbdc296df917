// Finds secrets in a configuration text, even an invalid one: values below names that the API marks as sensitive, including
// misspelt names, and credentials that can be recognized without the API.

import type { Alias, Document, isScalar, Node, Pair, Scalar, YAMLMap } from 'yaml';
import { nearest } from '../../common/text/suggest.js';
import {
  type Cover,
  coverOf,
  coversContent,
  credentialRanges,
  isCredentialName,
  mayHoldCredentials,
  namesCredential,
  REDACTED,
  shownOf,
} from './credentials.js';
import type { Range } from './excerpt.js';
import type { Path } from './path.js';
import { aliasTargets, type NodeKinds } from './yaml/alias-targets.js';

/**
 * Sensitive fields of the API. For fields with ambiguous names (`keys`, `secrets`, `typed_config`), the name of the enclosing
 * field is listed.
 */
export const SENSITIVE_NAMES: readonly string[] = [
  'auth_password',
  'auth_username',
  'backend_token',
  'context_extensions',
  'credentials',
  'credentials_data_source',
  'downstream_auth_password',
  'downstream_auth_passwords',
  'downstream_auth_username',
  'generic_secret',
  'password',
  'pkcs12',
  'private_key',
  'private_key_provider',
  'secret',
  'secret_access_key',
  'secret_data',
  'session_ticket_keys',
  'session_token',
  'users',
  'web_identity_token_data_source',
];

/** Fields below a sensitive one that are shown, because they only say where the secret is. */
const SHOWN = new Set(['@type', 'environment_variable', 'filename', 'name', 'path']);

/** Names that resemble those of sensitive fields or credentials, but are not secret. */
const NOT_SENSITIVE = new Set(['secrets', 'user']);

/** The parts of the YAML library that the search uses. */
export interface YamlVisitor extends NodeKinds {
  readonly isScalar: typeof isScalar;
}

/** A `Cover`, or the state below a name that the API marks as sensitive. There, the fields in SHOWN are shown. */
type TextCover = Cover | 'marked';

/** Returns the ranges of a document's secrets in its text. */
export function secretRanges(yaml: YamlVisitor, document: Document): readonly Range[] {
  const search = new TextSearch(yaml, document);
  search.read(document.contents, 'shown', 0);
  return search.found;
}

/** Returns whether a text that cannot be parsed may contain secrets: their ranges cannot be determined. */
export function mayHoldSecrets(text: string): boolean {
  const known = new Map<string, boolean>();
  for (const [, name, next] of text.matchAll(NAME)) {
    const isContainer = next === undefined;
    const key = `${name} ${isContainer}`;
    if (!known.has(key)) known.set(key, mayBeSensitive(name!) || mayBeCredential(name!, isContainer));
    if (known.get(key)) return true;
  }
  for (const [, name] of text.matchAll(LABELLED)) if (isCredentialName(name!)) return true;
  return HOLDERS.test(text) || mayHoldCredentials(text);
}

/** A possible key, and whether text follows it on its line. In a text protobuf, a message follows without a colon. */
const NAME = /([A-Za-z][\w-]{2,40})["']?[ \t]*[:{<](?:[ \t]*([^\s{[<]))?/g;
/** The value of a field that names its sibling, as in `key: password`. */
const LABELLED = /(?:key|name|tag)["']?\s*:\s*["']?([\w.-]{3,60})/gi;
const HOLDERS = /initial_?metadata|cookies["']?[ \t]*[:{<]/i;

/** Returns the secret at a path of a plain value; '' if there is none. */
export function secretAt(value: unknown, path: Path): string {
  let [held, cover]: [unknown, TextCover] = [value, 'shown'];
  for (const part of path) {
    if (typeof held !== 'object' || held === null) return '';
    const name = memberName(held, String(part));
    const inner: unknown = (held as Record<string, unknown>)[name];
    cover = Array.isArray(held) ? cover : coverIn(held, name, inner, cover);
    held = inner;
  }
  const secrets = new Set<string>();
  if (typeof held !== 'object') collectLeaf(held, cover, secrets);
  return [...secrets].join('\n');
}

/** Maximum depth of the search. Only nested aliases exceed it, and messages do not quote values below it. */
const MAX_DEPTH = 200;

/** Returns the secrets within a plain value. */
export function secretsIn(value: unknown): readonly string[] {
  const secrets = new Set<string>();
  const seen = { shown: new Set(), named: new Set(), hidden: new Set(), marked: new Set() };
  const collect = (held: unknown, cover: TextCover, depth: number): void => {
    if (typeof held !== 'object' || held === null) return collectLeaf(held, cover, secrets);
    // Aliases may repeat a value endlessly.
    if (seen[cover].has(held) || depth > MAX_DEPTH) return;
    seen[cover].add(held);
    for (const [name, inner] of Object.entries(held)) {
      collect(inner, Array.isArray(held) ? cover : coverIn(held, name, inner, cover), depth + 1);
    }
  };
  collect(value, 'shown', 0);
  return [...secrets];
}

/** Hides secrets, and pieces of them, in messages. */
export class SecretIndex {
  /** Secrets that are not longer than a piece. */
  readonly #short = new Set<string>();
  readonly #long: readonly string[];
  /** A bitmap of the hashes of all pieces of long secrets, which can be very many. */
  readonly #hashes: Uint8Array;
  readonly #mask: number;

  constructor(secrets: readonly string[]) {
    // A message may contain a string in JSON form.
    const forms = new Set(secrets.flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1)]));
    for (const form of forms) if (form.length >= MIN_LENGTH && form.length <= PIECE) this.#short.add(form);
    this.#long = [...forms].filter(({ length }) => length >= PIECE);
    const pieces = this.#long.reduce((sum, { length }) => sum + length, 0);
    const bits = 2 ** Math.min(30, Math.max(10, Math.ceil(Math.log2(pieces * 16 + 1))));
    this.#mask = bits - 1;
    this.#hashes = new Uint8Array(bits / 8);
    for (const form of this.#long) {
      eachPiece(form, (_at, hash) => {
        const bit = hash & this.#mask;
        this.#hashes[bit >>> 3]! |= 1 << (bit & 7);
      });
    }
  }

  hide(message: string): string {
    const ranges: Range[] = [];
    if (this.#short.size > 0) {
      for (let at = 0; at < message.length; at++) {
        for (let length = PIECE; length >= MIN_LENGTH; length--) {
          if (this.#short.has(message.slice(at, at + length))) ranges.push({ from: at, to: at + length });
        }
      }
    }
    if (this.#long.length > 0) {
      eachPiece(message, (at, hash) => {
        const bit = hash & this.#mask;
        if ((this.#hashes[bit >>> 3]! & (1 << (bit & 7))) === 0) return;
        const piece = message.slice(at, at + PIECE);
        if (this.#long.some((secret) => secret.includes(piece))) ranges.push({ from: at, to: at + PIECE });
      });
    }
    return ranges.length === 0 ? message : withoutRanges(message, ranges);
  }
}

/** Calls `found` with the offset and hash of each piece. */
function eachPiece(text: string, found: (at: number, hash: number) => void): void {
  let hash = 0;
  for (let at = 0; at < text.length; at++) {
    hash = Math.imul(hash, BASE) + text.charCodeAt(at);
    if (at >= PIECE) hash -= Math.imul(text.charCodeAt(at - PIECE), FIRST_WEIGHT);
    hash |= 0;
    if (at >= PIECE - 1) found(at - PIECE + 1, hash ^ (hash >>> 15));
  }
}

/** Hides ranges. Overlapping and adjacent ranges are merged. */
function withoutRanges(message: string, ranges: Range[]): string {
  ranges.sort((a, b) => a.from - b.from);
  let [shown, end] = ['', -1];
  for (const { from, to } of ranges) {
    if (from > end) shown += message.slice(Math.max(end, 0), from) + REDACTED;
    end = Math.max(end, to);
  }
  return shown + message.slice(end);
}

/** Shorter secrets are not hidden: messages contain such texts by chance. */
const MIN_LENGTH = 4;
/** Length of the pieces of secrets that are hidden anywhere in a message. */
const PIECE = 8;
/** The base of the rolling hash, and the factor of a piece's first character when the hash moves on. */
const BASE = 0x01000193;
const FIRST_WEIGHT = Array.from({ length: PIECE }).reduce((weight: number) => Math.imul(weight, BASE), 1);

/**
 * Returns a message about a part of a configuration, without the secrets in it.
 * @param path the value that the message is about
 */
export function messageWithoutSecrets(message: string, config: unknown, path: Path = []): string {
  return new SecretIndex(secretsIn(config)).hide(messageWithoutSecret(message, secretAt(config, path)));
}

/** Returns a message without any part of the value that it is about. */
export function messageWithoutSecret(message: string, secret: string): string {
  if (!reveals(message, secret)) return message;
  const expected = withoutValue(message);
  return reveals(expected, secret) ? withoutValue('') : expected;
}

function reveals(message: string, secret: string): boolean {
  const length = Math.min(PART, secret.length);
  for (let at = 0; length > 0 && at + length <= secret.length; at++) {
    if (message.includes(secret.slice(at, at + length))) return true;
  }
  return false;
}

/** A message must not contain this many consecutive characters of the value. */
const PART = 3;

/** Returns only the part of a message that describes what was expected. */
export function withoutValue(message: string): string {
  const [expected] = message.split(', found ', 1);
  return expected === message ? 'the value is invalid' : expected!;
}

class TextSearch {
  readonly found: Range[] = [];
  readonly #yaml: YamlVisitor;
  readonly #targets: ReadonlyMap<Alias, Node | undefined>;
  /** The pairs of maps with merge keys. */
  readonly #merged = new Map<YAMLMap<Node, Node | null>, readonly Pair<Node, Node | null>[]>();
  readonly #seen = new Map<unknown, Set<TextCover>>();

  constructor(yaml: YamlVisitor, document: Document) {
    this.#yaml = yaml;
    this.#targets = aliasTargets(yaml, document);
  }

  read(read: unknown, cover: TextCover, depth: number): void {
    const { isMap, isScalar, isSeq } = this.#yaml;
    const node = this.#resolved(read);
    if (depth > MAX_DEPTH) return;
    // Only aliases lead to the same node twice.
    if (this.#targets.size > 0) {
      const covers = this.#seen.get(node) ?? new Set();
      if (covers.has(cover)) return;
      this.#seen.set(node, covers.add(cover));
    }
    if (isScalar(node)) this.#scalar(node, cover);
    else if (isSeq(node)) for (const item of node.items) this.read(item, cover, depth + 1);
    else if (isMap(node)) this.#map(node as YAMLMap<Node, Node | null>, cover, depth);
  }

  #scalar({ range, value }: Scalar, cover: TextCover): void {
    const secrets = new Set<string>();
    collectLeaf(value, cover, secrets);
    if (secrets.size > 0 && range) this.found.push({ from: range[0], to: range[1] });
  }

  #map(map: YAMLMap<Node, Node | null>, cover: TextCover, depth: number): void {
    const pairs = this.#pairsOf(map);
    const holder = Object.fromEntries(pairs.toReversed().map(({ key, value }) => [nameOf(key), this.#plain(value)]));
    for (const { key, value } of pairs) {
      const name = nameOf(key);
      this.read(value, coverIn(holder, name, this.#plain(value), cover), depth + 1);
    }
  }

  /** Returns the map's own pairs, followed by merged ones. */
  #pairsOf(map: YAMLMap<Node, Node | null>): readonly Pair<Node, Node | null>[] {
    if (!map.items.some(({ key }) => nameOf(key) === '<<')) return map.items;
    let pairs = this.#merged.get(map);
    if (pairs === undefined) {
      // Breaks the recursion for a map that contains itself.
      this.#merged.set(map, []);
      this.#merged.set(map, (pairs = this.#mergedPairs(map)));
    }
    return pairs;
  }

  #mergedPairs(map: YAMLMap<Node, Node | null>): Pair<Node, Node | null>[] {
    const pairs = map.items.filter(({ key }) => nameOf(key) !== '<<');
    const names = new Set(pairs.map(({ key }) => nameOf(key)));
    for (const { key, value } of map.items) {
      if (nameOf(key) !== '<<') continue;
      const merged = this.#resolved(value);
      for (const item of this.#yaml.isSeq(merged) ? merged.items : [merged]) {
        const held = this.#resolved(item);
        if (!this.#yaml.isMap(held)) continue;
        for (const pair of this.#pairsOf(held as YAMLMap<Node, Node | null>)) {
          const name = nameOf(pair.key);
          if (names.has(name)) continue;
          names.add(name);
          pairs.push(pair);
        }
      }
    }
    return pairs;
  }

  #resolved(node: unknown): unknown {
    return this.#yaml.isAlias(node) ? this.#targets.get(node) : node;
  }

  /** Returns a scalar's value; an empty object for other nodes, because siblings depend on scalars only. */
  #plain(node: unknown): unknown {
    const held = this.#resolved(node);
    return this.#yaml.isScalar(held) ? held.value : {};
  }
}

function collectLeaf(value: unknown, cover: TextCover, secrets: Set<string>): void {
  if (value === null || value === undefined || typeof value === 'object') return;
  const text = String(value);
  if (cover === 'marked' || (cover === 'hidden' && shownOf(value) !== value)) secrets.add(text);
  else if (typeof value === 'string') {
    for (const { from, to } of credentialRanges(text)) secrets.add(text.slice(from, to));
  }
}

function coverIn(holder: object, name: string, value: unknown, cover: TextCover): TextCover {
  if (cover === 'marked') return SHOWN.has(name) ? 'shown' : 'marked';
  if (cover !== 'hidden' && mayBeSensitive(name)) return 'marked';
  const isCredential = mayBeCredential(name, typeof value === 'object');
  const fields = holder as Record<string, unknown>;
  const isNamed = namesCredential((label) => fields[memberName(holder, label)]);
  return coverOf(snakeCase(name), isCredential, isNamed, cover);
}

/** Returns how `holder` spells an API field: in snake case or camel case. */
function memberName(holder: object, field: string): string {
  if (Object.hasOwn(holder, field)) return field;
  return field.replace(/_([a-z0-9])/g, (_all, letter: string) => letter.toUpperCase());
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function mayBeSensitive(name: string): boolean {
  let isNear = nearSensitive.get(name);
  if (isNear === undefined) {
    if (nearSensitive.size >= MAX_KNOWN) nearSensitive.clear();
    isNear = !NOT_SENSITIVE.has(name) && nearest(name, SENSITIVE_NAMES) !== undefined;
    if (name.length <= MAX_KNOWN_LENGTH) nearSensitive.set(name, isNear);
  }
  return isNear;
}

/** Cache: a text repeats few field names. */
const nearSensitive = new Map<string, boolean>();
const MAX_KNOWN = 1000;
const MAX_KNOWN_LENGTH = 100;

function mayBeCredential(name: string, isContainer: boolean): boolean {
  return !NOT_SENSITIVE.has(name) && (isContainer ? coversContent : isCredentialName)(name);
}

function nameOf(key: unknown): string {
  return String((key as { readonly value?: unknown } | null)?.value ?? '');
}
