// Parses any YAML with the library, and locates values in a text. The library is loaded on demand: most texts do not need it,
// and loading takes a tenth of the start-up time.

import { createRequire } from 'node:module';
import type * as Yaml from 'yaml';
import type {
  Composer,
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
import { Excerpts } from '../excerpt.js';
import type { PathPart } from '../path.js';
import { mayHoldSecrets, secretRanges } from '../secrets.js';
import {
  MAX_DEPTH,
  MAX_MISTAKES,
  type Source,
  type SourceResult,
  syntaxProblems,
  type TextMistake,
  TOO_DEEP,
} from '../source.js';
import type { ValueEvents } from '../value-events.js';
import { NodeBuilder } from './node-builder.js';
import { isMergeKey, NodeFinder, writtenName } from './node-finder.js';
import { copyNote, isBooleanWord, noteScalar, yamlInteger } from './yaml-number.js';

/** Reads YAML 1.2. */
export function readDocument(name: string, text: string): SourceResult {
  let parsed: Parsed;
  try {
    parsed = parse(text);
  } catch (error) {
    if (error instanceof YamlMistake) return refuse(name, text, error.offset, error.message);
    return refuse(name, text, 0, `invalid YAML: ${messageOf(error)}`);
  }
  const { document, mistakes } = parsed;
  if (document === undefined || mistakes.length > 0)
    return { problems: syntaxProblems(name, text, explained(text, document, mistakes)) };
  const reader = new PlainReader();
  try {
    const value = reader.read(document.contents, [], 0);
    const source = { name, value, size: reader.size, ...locatorOf(text, () => document) };
    const problems = syntaxProblems(name, text, reader.repeated);
    return { source, problems, furtherProblems: reader.furtherRepeated };
  } catch (error) {
    if (error instanceof YamlMistake) return refuse(name, text, error.offset, error.message);
    throw error;
  }
}

/**
 * Returns a function that locates paths in the text.
 * @param read returns the document of the text; called on first use, which mostly is an error
 */
export function locatorOf(text: string, read: () => Document): Pick<Source, 'locate'> {
  let known: { readonly finder: NodeFinder; readonly excerpts: Excerpts } | undefined;
  const prepare = () => {
    const document = read();
    return {
      finder: new NodeFinder(yaml(), document),
      excerpts: new Excerpts(text, secretRanges(yaml(), document)),
    };
  };
  return {
    locate(path, at) {
      known ??= prepare();
      const found = known.finder.find(path);
      if (found === undefined) return undefined;
      const node = (at === 'key' ? found.key : (found.node ?? found.key)) as Node | null;
      return known.excerpts.at(node?.range?.[0] ?? 0);
    },
  };
}

/** Returns the document of a text from the events of another parser. */
export function documentOf(text: string, read: (events: ValueEvents) => void): Document {
  const builder = new NodeBuilder(yaml(), text);
  read(builder);
  return builder.document();
}

/** Returns a text with its secrets hidden. */
export function withoutSecrets(text: string): string {
  if (!mayHoldSecrets(text)) return text;
  let parsed: Parsed;
  try {
    parsed = parse(text);
  } catch {
    return REDACTED;
  }
  const { document, mistakes } = parsed;
  if (document === undefined || mistakes.some(({ name }) => name === 'YAMLParseError')) return REDACTED;
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

/** The result of the library. */
interface Parsed {
  /** Undefined if parsing stopped because of too many mistakes. */
  readonly document: Document.Parsed | undefined;
  readonly mistakes: readonly YAMLError[];
}

/**
 * Like the library's parseDocument(), but refuses excessive nesting before the library composes it. The library recurses to the
 * end of the stack, where V8 may abort the process. Parsing also stops after very many mistakes.
 */
function parse(text: string): Parsed {
  const composer = new (yaml().Composer)(YAML_OPTIONS) as unknown as ComposerParts;
  const { onError } = composer;
  let noted = 0;
  composer.onError = (source, code, message, isWarning) => {
    // Other warnings are about style, such as the position of a bracket.
    if (isWarning === true && code !== 'TAG_RESOLVE_FAILED') return;
    // The library may catch this error, and then reports it as another mistake.
    if (noted === MAX_ERRORS) throw TOO_MANY_ERRORS;
    noted++;
    onError(source, code, message, isWarning);
  };
  const { stackTraceLimit } = Error;
  // The stack traces of the library's errors are never shown.
  Error.stackTraceLimit = 0;
  let document: Document.Parsed | undefined;
  try {
    for (const next of composer.compose(tokensOf(text), true, text.length)) {
      if (document === undefined) document = next;
      else {
        document.errors.push(
          new (yaml().YAMLParseError)([next.range[0], next.range[1]], 'MULTIPLE_DOCS', ONE_DOCUMENT),
        );
        break;
      }
    }
    return { document, mistakes: [...document!.errors, ...document!.warnings] };
  } catch (error) {
    if (error !== TOO_MANY_ERRORS) throw error;
    return { document: undefined, mistakes: [...(document?.errors ?? []), ...composer.errors, ...composer.warnings] };
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** The library's composer, including its private members. */
interface ComposerParts extends Pick<Composer, 'compose'> {
  readonly errors: readonly YAMLError[];
  readonly warnings: readonly YAMLError[];
  onError(source: unknown, code: string, message: string, isWarning?: boolean): void;
}

/** Thrown internally and caught in parse(). */
const TOO_MANY_ERRORS = new Error('too many errors');

/** Throws a YamlMistake if the nesting exceeds every allowed depth. */
function* tokensOf(text: string): Generator<CST.Token> {
  const parser = new (yaml().Parser)();
  let errors = 0;
  for (const lexeme of new (yaml().Lexer)().lex(text)) {
    for (const token of parser.next(lexeme)) {
      if (token.type === 'error' && ++errors > MAX_ERRORS) return;
      yield token;
    }
    if (parser.stack.length > MAX_OPEN) throw new YamlMistake(TOO_DEEP, { range: [parser.offset] });
  }
  yield* parser.end();
}

/** Only the first mistake of each line is reported. */
const MAX_ERRORS = 1000;
/** Limit for collections, including document and value. PlainReader reports less excessive nesting with its place. */
const MAX_OPEN = 2 * MAX_DEPTH;
/** Maximum length of an integer that is parsed as such; larger ones exceed a double. */
const MAX_DIGITS = 400;
/** Maximum number of values that merge keys may copy. */
const MAX_MERGED = 1_000_000;
const MAX_SYNTAX_PROBLEMS = 10;
const ONE_DOCUMENT = 'a configuration is one YAML document, and another one begins here';

/** PlainReader finds duplicate keys, because the library compares each key with all others. */
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

/** Converts nodes to plain values. The value of an anchor is created once and shared. */
class PlainReader {
  size = 0;
  /** Duplicate keys of maps. */
  readonly repeated: TextMistake[] = [];
  /** Number of further duplicates. */
  furtherRepeated = 0;
  readonly #anchors = new Map<string, { value: unknown; noted: string | undefined; isOpen: boolean }>();
  /** The source of the last value, if it is a number or boolean word that has not been recorded yet. */
  #noted: string | undefined;
  #merged = 0;

  read(node: Node | null, path: PathPart[], depth: number): unknown {
    if (depth > MAX_DEPTH) throw new YamlMistake(TOO_DEEP, node);
    this.size++;
    this.#noted = undefined;
    if (node === null) return null;
    if (yaml().isAlias(node)) return this.#aliased(node);
    const anchor = { value: undefined as unknown, noted: undefined as string | undefined, isOpen: true };
    const name = (node as { anchor?: string }).anchor;
    if (name) this.#anchors.set(name, anchor);
    anchor.value = this.#content(node, path, depth);
    anchor.noted = this.#noted;
    anchor.isOpen = false;
    return anchor.value;
  }

  #aliased(node: Node & { source: string }): unknown {
    const anchor = this.#anchors.get(node.source);
    if (!anchor) throw new YamlMistake(`unknown alias '*${node.source}'`, node);
    if (anchor.isOpen) throw new YamlMistake(`alias '*${node.source}' contains itself`, node);
    this.#noted = anchor.noted;
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
    if (typeof value === 'number' || typeof value === 'bigint') this.#noted = node.source;
    else if (node.type === 'PLAIN' && typeof value === 'string' && isBooleanWord(value)) this.#noted = value;
    return value;
  }

  #note(holder: object, key: string | number): void {
    if (this.#noted !== undefined) noteScalar(holder, key, this.#noted);
    this.#noted = undefined;
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
      if (yaml().isScalar(key) && isMergeKey(key)) {
        merged.push({ key, value: held });
        continue;
      }
      if (Object.hasOwn(plain, name)) this.#noteRepeated(name, key);
      plain[name] = held;
      this.#note(plain, name);
    }
    this.#noted = undefined;
    for (const { key, value } of merged) this.#merge(plain, value, key);
    return plain;
  }

  #noteRepeated(name: string, key: Node): void {
    if (this.repeated.length === MAX_MISTAKES) this.furtherRepeated++;
    else this.repeated.push({ offset: key.range?.[0] ?? 0, message: `'${name.slice(0, 100)}' is set twice` });
  }

  #merge(plain: Record<string, unknown>, value: unknown, key: Node): void {
    for (const from of Array.isArray(value) ? value : [value]) {
      if (!isRecord(from)) throw new YamlMistake("'<<' needs a map or a list of maps", key);
      for (const [name, held] of Object.entries(from)) {
        if (++this.#merged > MAX_MERGED) throw new YamlMistake('aliases expand to too many values', key);
        if (Object.hasOwn(plain, name)) continue;
        plain[name] = held;
        copyNote(from, name, plain);
      }
    }
  }
}

/** Types that the library creates and no message contains: bytes, dates, special maps. */
const FOREIGN_TAGS = new Set(['binary', 'timestamp', 'omap', 'pairs', 'set'].map((tag) => `tag:yaml.org,2002:${tag}`));

function keyName(key: Node | null): string {
  if (key === null) return 'null';
  if (!yaml().isScalar(key)) {
    const hint = yaml().isMap(key) ? "; if '{{' begins a placeholder, it has to be filled in before" : '';
    throw new YamlMistake(`a key must be a plain name${hint}`, key);
  }
  return writtenName(key);
}

/**
 * Integers that a number can represent exactly become numbers, others stay bigints. Integers with a leading zero are octal, as
 * in Envoy and YAML 1.1, or else strings: file modes are written like this.
 */
function plainValue({ value, source = '', type }: Scalar): unknown {
  // The core schema has no signed hexadecimal numbers.
  if (type === 'PLAIN' && SIGNED_HEXADECIMAL.test(source)) return safeInteger(yamlInteger(source) ?? source);
  // No field accepts such a large number, and formatting it takes long.
  if (typeof value === 'bigint' && source.length > MAX_DIGITS) return source;
  if (typeof value !== 'bigint') return value;
  const integer = /^[-+]?0\d/.test(source) ? yamlInteger(source) : value;
  return safeInteger(integer ?? source);
}

const SIGNED_HEXADECIMAL = /^[-+]0x[0-9a-f]+$/i;

function safeInteger(value: bigint | string): unknown {
  return typeof value === 'bigint' && Number.isSafeInteger(Number(value)) ? Number(value) : value;
}

/** Returns one mistake per line, since further ones on a line mostly are consequences. */
function explained(text: string, document: Document | undefined, mistakes: readonly YAMLError[]): TextMistake[] {
  const found: TextMistake[] = [];
  const hasSecrets = mayHoldSecrets(text);
  let [from, to] = [0, -1];
  for (const mistake of mistakes) {
    const offset = offsetOf(mistake, text, document);
    if (offset >= from && offset <= to) continue;
    from = text.lastIndexOf('\n', offset - 1) + 1;
    const end = text.indexOf('\n', offset);
    to = end < 0 ? text.length : end;
    found.push({ offset, message: explain(hasSecrets ? withoutSource(mistake) : mistake, text, offset) });
    if (found.length === MAX_SYNTAX_PROBLEMS) break;
  }
  return found;
}

/** Returns the offset that users expect: the first character of a wrongly indented line, or an unclosed quote. */
function offsetOf({ code, message, pos }: YAMLError, text: string, document: Document | undefined): number {
  let offset = pos[0];
  if (UNCLOSED.test(message) && document) return quoteThatEndsAt(offset, document) ?? offset;
  if (code === 'BAD_INDENT' || message === NO_DASH) while (text[offset] === ' ') offset++;
  return offset;
}

/** The library's messages for an unterminated string, and for a line between list items that belongs to none. */
const UNCLOSED = /^Missing closing ["']quote$/;
const NO_DASH = 'Sequence item without - indicator';

/** Returns the start of the quoted string that ends there. */
function quoteThatEndsAt(end: number, document: Document): number | undefined {
  let from: number | undefined;
  yaml().visit(document, {
    Scalar: (_key, { range, type }) => {
      if (type?.startsWith('QUOTE') && range?.[1] === end) from = range[0];
    },
  });
  return from;
}

/** Removes the text that the library quotes after a colon. */
function withoutSource({ code, message }: YAMLError): Pick<YAMLError, 'code' | 'message'> {
  return { code, message: message.replace(/: .*/s, '') };
}

/** Returns the library's message with its most likely meaning. Quoted text is shortened. */
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
      return `${message}; separate a name from its value by a colon and a space`;
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
