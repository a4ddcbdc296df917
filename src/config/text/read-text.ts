// Parses a configuration text into plain values.
//
// Hostile input is bounded in size, depth and alias expansion. Mistakes become problems and are never thrown.

import { scanJson } from './json-scan.js';
import { type SourceResult, syntaxProblems, TOO_DEEP } from './source.js';
import { readPlainYaml } from './yaml/plain-yaml.js';
import { documentOf, locatorOf, readDocument } from './yaml/yaml-document.js';

/** Reads YAML 1.2, which includes JSON. Further documents must be empty. */
export function readYaml(name: string, written: string): SourceResult {
  const text = withoutEmptyDocuments(written);
  const plain = readPlainYaml(text);
  if (plain === undefined) return readDocument(name, text);
  const { tooDeepAt: offset } = plain;
  if (offset !== undefined) return { problems: syntaxProblems(name, text, [{ offset, message: TOO_DEEP }]) };
  const document = () => documentOf(text, (events) => readPlainYaml(text, events));
  return { source: { name, ...plain, ...locatorOf(text, document) }, problems: [] };
}

/** Reads JSON like protobuf's own parser, which accepts trailing commas in lists and maps. */
export function readJson(name: string, text: string): SourceResult {
  const { broken, repeated, furtherRepeated, trailingCommas } = scanJson(text);
  if (broken !== undefined) return { problems: syntaxProblems(name, text, [broken]) };
  const value: unknown = JSON.parse(without(trailingCommas, text));
  const document = () => documentOf(text, (events) => scanJson(text, events));
  const source = { name, value, size: text.length, ...locatorOf(text, document) };
  return { source, problems: syntaxProblems(name, text, repeated), furtherProblems: furtherRepeated };
}

/** Replaces the characters at these offsets by spaces, so that all other offsets stay the same. */
function without(offsets: readonly number[], text: string): string {
  let from = 0;
  let rest = '';
  for (const offset of offsets) {
    rest += `${text.slice(from, offset)} `;
    from = offset + 1;
  }
  return rest + text.slice(from);
}

/** Removes `---` lines at the end of a text that only comments follow, as concatenated files have them. */
function withoutEmptyDocuments(text: string): string {
  let end = text.length;
  for (let lineEnd = end; lineEnd > 0; ) {
    const start = text.lastIndexOf('\n', lineEnd - 1) + 1;
    const line = text.slice(start, lineEnd);
    if (DOCUMENT_START.test(line)) end = start;
    else if (!EMPTY_LINE.test(line)) break;
    lineEnd = start - 1;
  }
  return text.slice(0, end);
}

const DOCUMENT_START = /^---(?:[ \t]+(?:#.*)?)?\r?$/;
const EMPTY_LINE = /^[ \t]*(?:#.*)?\r?$/;
