// One configuration text read into plain values.
//
// Hostile input is bounded: size, depth and what aliases expand to; its mistakes become problems, never exceptions.

import { scanJson } from './json-scan.js';
import { type SourceResult, syntaxProblems } from './source.js';
import { readPlainYaml } from './yaml/plain-yaml.js';
import { readDocument, wayBack } from './yaml/yaml-document.js';

/** Reads YAML 1.2; JSON is a part of it. */
export function readYaml(name: string, text: string): SourceResult {
  const plain = readPlainYaml(text);
  return plain ? { source: { name, ...plain, ...wayBack(text) } } : readDocument(name, text);
}

/** Reads strict JSON. */
export function readJson(name: string, text: string): SourceResult {
  const mistakes = scanJson(text);
  if (mistakes.length > 0) {
    return { problems: syntaxProblems(name, text, mistakes) };
  }
  const value: unknown = JSON.parse(text);
  return { source: { name, value, size: text.length, ...wayBack(text) } };
}
