// YAML as the library reads it, whatever it holds, and where in a text its values stand. The library is loaded by the first text that
// needs it: most do not, and it takes a tenth of a start.

import { createRequire } from 'node:module';
import type * as Yaml from 'yaml';
import type {
  CST,
  Document,
  DocumentOptions,
  Node,
  ParseOptions,
  Scalar,
  SchemaOptions,
  YAMLError,
  YAMLMap,
  YAMLSeq,
} from 'yaml';
import { messageOf } from '../../../common/errors/errors.js';
import { isRecord } from '../../../common/records.js';
import { REDACTED } from '../credentials.js';
import { excerptAt, type Range } from '../excerpt.js';
import type { Path, PathPart } from '../path.js';
import { mayHoldSecrets, secretRanges } from '../secrets.js';
import { MAX_DEPTH, type Source, type SourceResult, syntaxProblems, type TextMistake } from '../source.js';
import { noteNumber, textOfNumber, yamlInteger } from './yaml-number.js';

/** Reads YAML 1.2. */
export function readDocument(name: string, text: string): SourceResult {
  let document: Document.Parsed;
  try {
    document = parse(text);
  } catch (error) {
    if (error instanceof YamlMistake) return refuse(name, text, error.offset, error.message);
    return refuse(name, text, 0, `invalid YAML: ${messageOf(error)}`);
  }
  // Other warnings are of taste, such as where a bracket stands.
  const unknownTags = document.warnings.filter((warning) => warning.code === 'TAG_RESOLVE_FAILED');
  const mistakes = [...document.errors, ...unknownTags];
  if (mistakes.length > 0) return { problems: syntaxProblems(name, text, explained(text, document, mistakes)) };
  const reader = new PlainReader();
  try {
    const value = reader.read(document.contents, [], 0);
    const source = { name, value, size: reader.size, ...wayBack(text, document) };
    return { source, problems: syntaxProblems(name, text, reader.repeated) };
  } catch (error) {
    if (error instanceof YamlMistake) return refuse(name, text, error.offset, error.message);
    throw error;
  }
}

/** From values back to the text. The library reads it, unless it has, when that is needed: mostly when something is wrong. */
export function wayBack(text: string, document?: Document): Pick<Source, 'locate'> {
  let known = document;
  let secrets: readonly Range[] | undefined;
  const read = () => {
    known ??= parse(text);
    return known;
  };
  return {
    locate(path, at) {
      const found = findIn(read(), path);
      if (found === undefined) return undefined;
      secrets ??= secretRanges(yaml(), read());
      const node = (at === 'key' ? found.key : (found.node ?? found.key)) as Node | null;
      return excerptAt(text, node?.range?.[0] ?? 0, secrets);
    },
  };
}

/** A text as it may be shown. */
export function withoutSecrets(text: string): string {
  if (!mayHoldSecrets(text)) return text;
  let document: Document.Parsed;
  try {
    document = parse(text);
  } catch {
    return REDACTED;
  }
  if (document.errors.length > 0) return REDACTED;
  let [shown, end] = ['', 0];
  for (const { from, to } of secretRanges(yaml(), document).toSorted((a, b) => a.from - b.from)) {
    if (from < end) continue;
    shown += `${text.slice(end, from)}"${REDACTED}"`;
    end = to;
  }
  return shown + text.slice(end);
}

let loaded: typeof Yaml | undefined;

function yaml(): typeof Yaml {
  loaded ??= createRequire(import.meta.url)('yaml') as typeof Yaml;
  return loaded;
}

/**
 * As the library's parseDocument, except that what is nested far too deeply is refused before the library composes it: that recurses
 * to the end of the stack, where V8 may end the process.
 */
function parse(text: string): Document.Parsed {
  const composer = new (yaml().Composer)(YAML_OPTIONS);
  let first: Document.Parsed | undefined;
  for (const document of composer.compose(tokensOf(text), true, text.length)) {
    if (first === undefined) first = document;
    else {
      first.errors.push(
        new (yaml().YAMLParseError)([document.range[0], document.range[1]], 'MULTIPLE_DOCS', ONE_DOCUMENT),
      );
      break;
    }
  }
  return first as Document.Parsed;
}

/** Throws a YamlMistake when more is open at once than any text may hold. */
function* tokensOf(text: string): Generator<CST.Token> {
  const parser = new (yaml().Parser)();
  for (const lexeme of new (yaml().Lexer)().lex(text)) {
    yield* parser.next(lexeme);
    if (parser.stack.length > MAX_OPEN) throw new YamlMistake(TOO_DEEP, { range: [parser.offset] });
  }
  yield* parser.end();
}

/** Collections, with the document and a value: those below it the reader of values refuses, with their places. */
const MAX_OPEN = 2 * MAX_DEPTH;
/** Values that merge keys may copy. */
const MAX_MERGED = 1_000_000;
const MAX_SYNTAX_PROBLEMS = 10;
const ONE_DOCUMENT = 'a configuration is one YAML document, and another one begins here';
const TOO_DEEP = `nested deeper than ${MAX_DEPTH} levels`;

/** Duplicate keys are found by PlainReader: the library compares each key with all others. */
const YAML_OPTIONS: ParseOptions & DocumentOptions & SchemaOptions = {
  prettyErrors: false,
  uniqueKeys: false,
  intAsBigInt: true,
  keepSourceTokens: false,
  customTags: [{ tag: '!ignore', resolve: (text: string) => text }],
};

class YamlMistake extends Error {
  readonly offset: number;

  constructor(message: string, node: { readonly range?: readonly number[] | null | undefined } | null | undefined) {
    super(message);
    this.offset = node?.range?.[0] ?? 0;
  }
}

/** Turns nodes into plain values. What an alias names is made once and shared. */
class PlainReader {
  size = 0;
  /** Keys that a map has twice. */
  readonly repeated: YamlMistake[] = [];
  readonly #anchors = new Map<string, { value: unknown; number: string | undefined; isOpen: boolean }>();
  /** The last value as it is written, if it is a number that nobody has noted. */
  #number: string | undefined;
  #merged = 0;

  read(node: Node | null, path: PathPart[], depth: number): unknown {
    if (depth > MAX_DEPTH) throw new YamlMistake(TOO_DEEP, node);
    this.size++;
    this.#number = undefined;
    if (node === null) return null;
    if (yaml().isAlias(node)) return this.#aliased(node);
    const anchor = { value: undefined as unknown, number: undefined as string | undefined, isOpen: true };
    const name = (node as { anchor?: string }).anchor;
    if (name) this.#anchors.set(name, anchor);
    anchor.value = this.#content(node, path, depth);
    anchor.number = this.#number;
    anchor.isOpen = false;
    return anchor.value;
  }

  #aliased(node: Node & { source: string }): unknown {
    const anchor = this.#anchors.get(node.source);
    if (!anchor) throw new YamlMistake(`unknown alias '*${node.source}'`, node);
    if (anchor.isOpen) throw new YamlMistake(`alias '*${node.source}' holds itself`, node);
    this.#number = anchor.number;
    return anchor.value;
  }

  #content(node: Node, path: PathPart[], depth: number): unknown {
    if (FOREIGN_TAGS.has(node.tag ?? '')) throw new YamlMistake(`unknown tag '${node.tag}'`, node);
    if (yaml().isScalar(node)) return this.#scalar(node);
    if (yaml().isSeq(node)) return this.#list(node as YAMLSeq<Node | null>, path, depth);
    if (yaml().isMap(node)) return this.#map(node as YAMLMap<Node, Node | null>, path, depth);
    throw new YamlMistake('unexpected YAML construct', node);
  }

  #child(node: Node | null, part: PathPart, path: PathPart[], depth: number): unknown {
    path.push(part);
    const value = this.read(node, path, depth + 1);
    path.pop();
    return value;
  }

  #scalar(node: Scalar): unknown {
    const value = plainValue(node);
    if (typeof value === 'number' || typeof value === 'bigint') this.#number = node.source;
    return value;
  }

  #note(holder: object, key: string | number): void {
    if (this.#number !== undefined) noteNumber(holder, key, this.#number);
    this.#number = undefined;
  }

  #list({ items }: YAMLSeq<Node | null>, path: PathPart[], depth: number): unknown[] {
    const list: unknown[] = [];
    for (const [index, item] of items.entries()) {
      list.push(this.#child(item, index, path, depth));
      this.#note(list, index);
    }
    return list;
  }

  #map(node: YAMLMap<Node, Node | null>, path: PathPart[], depth: number): Record<string, unknown> {
    const plain: Record<string, unknown> = Object.create(null);
    const merged: { key: Node; value: unknown }[] = [];
    for (const { key, value } of node.items) {
      const name = keyName(key);
      const held = this.#child(value, name, path, depth);
      if (key.tag === '!ignore') continue;
      if (isMergeKey(key)) {
        merged.push({ key, value: held });
        continue;
      }
      if (Object.hasOwn(plain, name)) this.repeated.push(new YamlMistake(`'${name}' is set twice`, key));
      plain[name] = held;
      this.#note(plain, name);
    }
    this.#number = undefined;
    for (const { key, value } of merged) this.#merge(plain, value, key);
    return plain;
  }

  #merge(plain: Record<string, unknown>, value: unknown, key: Node): void {
    for (const from of Array.isArray(value) ? value : [value]) {
      if (!isRecord(from)) throw new YamlMistake("'<<' needs a map or a list of maps", key);
      for (const [name, held] of Object.entries(from)) {
        if (++this.#merged > MAX_MERGED) throw new YamlMistake('aliases expand to too many values', key);
        if (Object.hasOwn(plain, name)) continue;
        plain[name] = held;
        const text = textOfNumber(from, name);
        if (text !== undefined) noteNumber(plain, name, text);
      }
    }
  }
}

/** The library reads them as what no message holds: bytes, dates, maps of its own. */
const FOREIGN_TAGS = new Set(['binary', 'timestamp', 'omap', 'pairs', 'set'].map((tag) => `tag:yaml.org,2002:${tag}`));

function isMergeKey(key: unknown): boolean {
  return yaml().isScalar(key) && key.value === '<<' && key.type === 'PLAIN';
}

function keyName(key: Node | null): string {
  if (key === null) return 'null';
  if (!yaml().isScalar(key)) {
    const hint = yaml().isMap(key) ? "; if '{{' begins a placeholder, it has to be filled in before" : '';
    throw new YamlMistake(`a key must be a plain name${hint}`, key);
  }
  return writtenName(key);
}

/** A name is what is written, whatever it would be as a value: `1.0`, `0400`, `True`. */
function writtenName({ value, source }: Scalar): string {
  return typeof value === 'string' ? value : (source ?? String(value));
}

/**
 * Integers that a number holds exactly become numbers; the rest stays a bigint. What begins with a zero is octal, as Envoy and YAML 1.1
 * have it, or a text: modes of files are written so.
 */
function plainValue({ value, source = '' }: Scalar): unknown {
  if (typeof value !== 'bigint') return value;
  const integer = /^[-+]?0\d/.test(source) ? yamlInteger(source) : value;
  if (integer === undefined) return source;
  return Number.isSafeInteger(Number(integer)) ? Number(integer) : integer;
}

function findIn(document: Document, path: Path): { key: unknown; node: unknown } | undefined {
  let node: unknown = document.contents;
  let key: unknown = node;
  for (const part of path) {
    node = yaml().isAlias(node) ? node.resolve(document) : node;
    const pair = yaml().isMap(node) ? findPair(node as YAMLMap, String(part), document) : undefined;
    if (pair) [key, node] = [pair.key, pair.value];
    else if (yaml().isSeq(node) && typeof part === 'number' && part < node.items.length) key = node = node.items[part];
    else return undefined;
  }
  return { key, node };
}

/** `seen`: names of aliases that are looked into already. Maps may be merged with the same ones again and again. */
function findPair(
  map: YAMLMap,
  name: string,
  document: Document,
  seen = new Set<string>(),
): { key: unknown; value: unknown } | undefined {
  for (const isIt of [isSame, isSpelling]) {
    const found = map.items.findLast(
      (pair) => yaml().isScalar(pair.key) && isIt(writtenName(pair.key as Scalar), name),
    );
    if (found) return found;
  }
  for (const pair of map.items.filter((candidate) => isMergeKey(candidate.key))) {
    for (const from of yaml().isSeq(pair.value) ? pair.value.items : [pair.value]) {
      const isAlias = yaml().isAlias(from);
      if (isAlias && seen.has(from.source)) continue;
      if (isAlias) seen.add(from.source);
      const target = isAlias ? from.resolve(document) : from;
      const found = yaml().isMap(target) ? findPair(target as YAMLMap, name, document, seen) : undefined;
      if (found) return found;
    }
  }
  return undefined;
}

/** Whether a key of the text is that field in lowerCamelCase. */
function isSpelling(key: string, name: string): boolean {
  return name.includes('_') && !key.includes('_') && key.toLowerCase() === name.replaceAll('_', '').toLowerCase();
}

function isSame(key: string, name: string): boolean {
  return key === name;
}

/** One a line, as what follows a mistake on its line is mostly its consequence. */
function explained(text: string, document: Document, mistakes: readonly YAMLError[]): TextMistake[] {
  const found: TextMistake[] = [];
  const hasSecrets = mayHoldSecrets(text);
  let lineOfLast: number | undefined;
  for (const mistake of mistakes) {
    const offset = offsetOf(mistake, text, document);
    const line = text.lastIndexOf('\n', offset - 1);
    if (line === lineOfLast) continue;
    lineOfLast = line;
    found.push({ offset, message: explain(hasSecrets ? withoutSource(mistake) : mistake, text, offset) });
    if (found.length === MAX_SYNTAX_PROBLEMS) break;
  }
  return found;
}

/** Where a reader looks: at the first character of a line that is indented wrongly, at a quote that nothing closes. */
function offsetOf({ code, message, pos }: YAMLError, text: string, document: Document): number {
  let offset = pos[0];
  if (UNCLOSED.test(message)) return quoteThatEndsAt(offset, document) ?? offset;
  if (code === 'BAD_INDENT' || message === NO_DASH) while (text[offset] === ' ') offset++;
  return offset;
}

/** What the library says of a quoted text that does not end, and of a line between two items of a list that belongs to none. */
const UNCLOSED = /^Missing closing ["']quote$/;
const NO_DASH = 'Sequence item without - indicator';

/** Where the quoted text begins. */
function quoteThatEndsAt(end: number, document: Document): number | undefined {
  let from: number | undefined;
  yaml().visit(document, {
    Scalar: (_key, { range, type }) => {
      if (type?.startsWith('QUOTE') && range?.[1] === end) from = range[0];
    },
  });
  return from;
}

/** The library quotes the text behind a colon. */
function withoutSource({ code, message }: YAMLError): Pick<YAMLError, 'code' | 'message'> {
  return { code, message: message.replace(/: .*/s, '') };
}

/** The library's words, with what they mostly mean. Of a text that it quotes, the beginning. */
function explain(mistake: Pick<YAMLError, 'code' | 'message'>, text: string, offset: number): string {
  const { code } = mistake;
  const message = mistake.message.replace(/: (".{40}).*/s, ': $1…"');
  const start = text.lastIndexOf('\n', offset - 1) + 1;
  const isTab = /^[ ]*\t/.test(text.slice(start, offset + 1));
  if (isTab && code !== 'TAB_AS_INDENT') return `${message}; the line begins with a tab: indent with spaces`;
  switch (code) {
    case 'MULTIPLE_DOCS':
      return ONE_DOCUMENT;
    case 'BAD_INDENT':
      return `${message}; the line is indented more or less than the lines it belongs to`;
    case 'BLOCK_AS_IMPLICIT_KEY':
      return `${message}; put a text with ': ' into quotes, or indent the following line less`;
    case 'MULTILINE_IMPLICIT_KEY':
      return `${message}; between a name and its value stand a colon and a space`;
    default:
      if (message === NO_DASH) return `${message}; the line is indented less than the item above it`;
      return /^(Plain value cannot start|Alias cannot be)/.test(message)
        ? `${message}; put a text that begins with '${text[offset]}' into quotes`
        : message;
  }
}

function refuse(name: string, text: string, offset: number, message: string): SourceResult {
  return { problems: syntaxProblems(name, text, [{ offset, message }]) };
}
