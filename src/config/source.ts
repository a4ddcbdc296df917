// One configuration text read into plain values (objects, lists, scalars), with the way back from a path to a line.
//
// Hostile input is bounded: size, depth and what aliases expand to; its mistakes become problems, never exceptions.

import {
  type Document,
  type DocumentOptions,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  type Node,
  type ParseOptions,
  parseDocument,
  type Scalar,
  type SchemaOptions,
  type YAMLError,
  type YAMLMap,
} from 'yaml';
import { messageOf } from '../common/errors.js';
import { excerptAt, type Place } from './excerpt.js';
import { formatPath, type Path, type PathPart } from './path.js';
import type { Problem } from './problem.js';

export interface Source {
  /** The file as the user named it, or the option that carried the text. */
  readonly name: string;
  readonly value: unknown;
  /** How many values the text holds, each counted once however often an alias repeats it. */
  readonly size: number;
  /** Where a path stands in the text: its key, or what the key holds. Undefined when the text has no such path. */
  locate(path: Path, at: 'key' | 'value'): Place | undefined;
}

export type SourceResult =
  | { readonly source: Source; readonly problems?: undefined }
  | { readonly source?: undefined; readonly problems: readonly Problem[] };

/** Values nested deeper than this are refused, as protobuf's own parsers do. */
export const MAX_DEPTH = 100;

/** Reads YAML 1.2; JSON is a part of it. */
export function readYaml(name: string, text: string): SourceResult {
  let document: Document.Parsed;
  try {
    document = parseDocument(text, YAML_OPTIONS);
  } catch (error) {
    return refuse(name, text, 0, error instanceof RangeError ? TOO_DEEP : `invalid YAML: ${messageOf(error)}`);
  }
  // Other warnings are of taste, such as where a bracket stands.
  const unknownTags = document.warnings.filter((warning) => warning.code === 'TAG_RESOLVE_FAILED');
  const mistakes = [...document.errors, ...unknownTags];
  if (mistakes.length > 0) return { problems: syntaxProblems(name, text, mistakes) };
  const reader = new PlainReader();
  try {
    const value = reader.read(document.contents, [], 0);
    return { source: { name, value, size: reader.size, locate: (path, at) => locateIn(document, text, path, at) } };
  } catch (error) {
    if (error instanceof YamlMistake) return refuse(name, text, error.offset, error.message);
    throw error;
  }
}

/** Reads strict JSON. */
export function readJson(name: string, text: string): SourceResult {
  const tooDeep = tooDeepAt(text);
  if (tooDeep !== undefined) return refuse(name, text, tooDeep, TOO_DEEP);
  try {
    const value: unknown = JSON.parse(text);
    let document: Document.Parsed | undefined;
    return {
      source: {
        name,
        value,
        size: text.length,
        locate: (path, at) => {
          document ??= parseDocument(text, YAML_OPTIONS);
          return locateIn(document, text, path, at);
        },
      },
    };
  } catch (error) {
    const message = messageOf(error);
    const position = /at position (\d+)/.exec(message);
    const what = message.replace(/,? ?(in JSON )?at position \d+.*$/s, '').replace(/, ".*" is not valid JSON$/s, '');
    return refuse(name, text, position ? Number(position[1]) : text.length, `invalid JSON: ${what}`);
  }
}

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

  constructor(message: string, node: Node | null | undefined) {
    super(message);
    this.offset = node?.range?.[0] ?? 0;
  }
}

/** Turns nodes into plain values. What an alias names is made once and shared. */
class PlainReader {
  size = 0;
  readonly #anchors = new Map<string, { value: unknown; isOpen: boolean }>();

  read(node: Node | null, path: PathPart[], depth: number): unknown {
    if (depth > MAX_DEPTH) throw new YamlMistake(TOO_DEEP, node);
    this.size++;
    if (node === null) return null;
    if (isAlias(node)) return this.#aliased(node);
    const anchor = { value: undefined as unknown, isOpen: true };
    const name = (node as { anchor?: string }).anchor;
    if (name) this.#anchors.set(name, anchor);
    anchor.value = this.#content(node, path, depth);
    anchor.isOpen = false;
    return anchor.value;
  }

  #aliased(node: Node & { source: string }): unknown {
    const anchor = this.#anchors.get(node.source);
    if (!anchor) throw new YamlMistake(`unknown alias '*${node.source}'`, node);
    if (anchor.isOpen) throw new YamlMistake(`alias '*${node.source}' holds itself`, node);
    return anchor.value;
  }

  #content(node: Node, path: PathPart[], depth: number): unknown {
    if (isScalar(node)) return narrow(node.value);
    if (isSeq(node)) {
      return node.items.map((item, index) => this.#child(item as Node | null, index, path, depth));
    }
    if (isMap(node)) return this.#map(node as YAMLMap<Node, Node | null>, path, depth);
    throw new YamlMistake('unexpected YAML construct', node);
  }

  #child(node: Node | null, part: PathPart, path: PathPart[], depth: number): unknown {
    path.push(part);
    const value = this.read(node, path, depth + 1);
    path.pop();
    return value;
  }

  #map(node: YAMLMap<Node, Node | null>, path: PathPart[], depth: number): Record<string, unknown> {
    const plain: Record<string, unknown> = Object.create(null);
    const merged: { key: Node; value: unknown }[] = [];
    for (const { key, value } of node.items) {
      const name = keyName(key);
      const held = this.#child(value, name, path, depth);
      if (key.tag === '!ignore') continue;
      if (isMergeKey(key)) merged.push({ key, value: held });
      else if (Object.hasOwn(plain, name)) throw new YamlMistake(`'${name}' is set twice`, key);
      else plain[name] = held;
    }
    for (const { key, value } of merged) mergeInto(plain, value, key);
    return plain;
  }
}

function mergeInto(plain: Record<string, unknown>, value: unknown, key: Node): void {
  for (const from of Array.isArray(value) ? value : [value]) {
    if (typeof from !== 'object' || from === null || Array.isArray(from)) {
      throw new YamlMistake("'<<' needs a map or a list of maps", key);
    }
    for (const [name, held] of Object.entries(from)) if (!Object.hasOwn(plain, name)) plain[name] = held;
  }
}

function isMergeKey(key: unknown): boolean {
  return isScalar(key) && key.value === '<<' && key.type === 'PLAIN';
}

function keyName(key: Node | null): string {
  if (key === null) return 'null';
  if (!isScalar(key)) throw new YamlMistake('a key must be a plain name', key);
  return String(key.value);
}

/** Integers that a number holds exactly become numbers; the rest stays a bigint. */
function narrow(value: Scalar['value']): unknown {
  return typeof value === 'bigint' && Number.isSafeInteger(Number(value)) ? Number(value) : value;
}

/** Where a JSON text exceeds the depth; found before it is parsed, for the parser would build all of it. */
function tooDeepAt(text: string): number | undefined {
  let depth = 0;
  for (const { 0: token, index } of text.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{}]/gs)) {
    if (token === '[' || token === '{') depth++;
    else if (token === ']' || token === '}') depth--;
    if (depth > MAX_DEPTH) return index;
  }
  return undefined;
}

function locateIn(document: Document, text: string, path: Path, at: 'key' | 'value'): Place | undefined {
  let node: unknown = document.contents;
  let key: unknown = node;
  for (const part of path) {
    node = isAlias(node) ? node.resolve(document) : node;
    const pair = isMap(node) ? findPair(node as YAMLMap, String(part), document) : undefined;
    if (pair) [key, node] = [pair.key, pair.value];
    else if (isSeq(node) && typeof part === 'number' && part < node.items.length) key = node = node.items[part];
    else return undefined;
  }
  const found = (at === 'key' ? key : (node ?? key)) as Node | null;
  return excerptAt(text, found?.range?.[0] ?? 0);
}

function findPair(map: YAMLMap, name: string, document: Document): { key: unknown; value: unknown } | undefined {
  for (const pair of map.items) if (isScalar(pair.key) && isSpelling(String(pair.key.value), name)) return pair;
  for (const pair of map.items.filter((candidate) => isMergeKey(candidate.key))) {
    for (const from of isSeq(pair.value) ? pair.value.items : [pair.value]) {
      const target = isAlias(from) ? from.resolve(document) : from;
      const found = isMap(target) ? findPair(target as YAMLMap, name, document) : undefined;
      if (found) return found;
    }
  }
  return undefined;
}

/** Whether a key of the text is that field, spelled snake_case or lowerCamelCase. */
function isSpelling(key: string, name: string): boolean {
  return (
    key === name ||
    (name.includes('_') && !key.includes('_') && key.toLowerCase() === name.replaceAll('_', '').toLowerCase())
  );
}

/** One a line, as what follows a mistake on its line is mostly its consequence. */
function syntaxProblems(name: string, text: string, mistakes: readonly YAMLError[]): Problem[] {
  const problems: Problem[] = [];
  for (const { code, message, pos } of mistakes) {
    // The composer notes its own stack overflow as one more mistake in the text.
    if (message.includes('call stack')) return [syntaxProblem(name, text, pos[0], TOO_DEEP)];
    const problem = syntaxProblem(name, text, pos[0], code === 'MULTIPLE_DOCS' ? ONE_DOCUMENT : message);
    if (problem.line !== problems.at(-1)?.line) problems.push(problem);
    if (problems.length === MAX_SYNTAX_PROBLEMS) break;
  }
  return problems;
}

function syntaxProblem(name: string, text: string, offset: number, message: string): Problem {
  return { source: name, path: formatPath([]), message, ...excerptAt(text, offset) };
}

function refuse(name: string, text: string, offset: number, message: string): SourceResult {
  return { problems: [syntaxProblem(name, text, offset, message)] };
}
