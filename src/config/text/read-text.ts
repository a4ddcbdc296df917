// One configuration text read into plain values.
//
// Hostile input is bounded: size, depth and what aliases expand to; its mistakes become problems, never exceptions.

import { scanJson } from './json-scan.js';
import { type SourceResult, syntaxProblems, TOO_DEEP } from './source.js';
import { readPlainYaml } from './yaml/plain-yaml.js';
import { documentOf, readDocument, wayBack } from './yaml/yaml-document.js';

/** Reads YAML 1.2; JSON is a part of it. Documents behind the first one must be empty. */
export function readYaml(name: string, written: string): SourceResult {
  const text = withoutEmptyDocuments(written);
  const plain = readPlainYaml(text);
  if (plain === undefined) return readDocument(name, text);
  const { tooDeepAt: offset } = plain;
  if (offset !== undefined) return { problems: syntaxProblems(name, text, [{ offset, message: TOO_DEEP }]) };
  const document = () => documentOf(text, (events) => readPlainYaml(text, events));
  return { source: { name, ...plain, ...wayBack(text, document) }, problems: [] };
}

/** Reads JSON as protobuf's own parser does: a comma behind the last of a list or a map may stand there. */
export function readJson(name: string, text: string): SourceResult {
  const { broken, repeated, furtherRepeated, spareCommas } = scanJson(text);
  if (broken !== undefined) return { problems: syntaxProblems(name, text, [broken]) };
  const value: unknown = JSON.parse(without(spareCommas, text));
  const document = () => documentOf(text, (events) => scanJson(text, events));
  const source = { name, value, size: text.length, ...wayBack(text, document) };
  return { source, problems: syntaxProblems(name, text, repeated), furtherProblems: furtherRepeated };
}

/** The text with spaces in place of these characters: all others stay where they are. */
function without(offsets: readonly number[], text: string): string {
  let from = 0;
  let rest = '';
  for (const offset of offsets) {
    rest += `${text.slice(from, offset)} `;
    from = offset + 1;
  }
  return rest + text.slice(from);
}

/** What a text holds before the `---` at its end, behind which there is nothing but comments: files put together of several end so. */
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
