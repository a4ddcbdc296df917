// Finds the nodes of paths in a document. Paths use the API's names; the document may use lowerCamelCase.

import type * as Yaml from 'yaml';
import type { Alias, Document, Node, Pair, Scalar, YAMLMap } from 'yaml';
import type { Path } from '../path.js';
import { aliasTargets } from './alias-targets.js';

type AnyPair = Pair<unknown, unknown>;
type AnyMap = YAMLMap<unknown, unknown>;

/** The pairs of a map by name; the last one of duplicates. */
interface NamedPairs {
  readonly written: ReadonlyMap<string, AnyPair>;
  /** Pairs without a `_` in their names, keyed by the name in lower case. */
  readonly spelled: ReadonlyMap<string, AnyPair>;
  /** The values of merge keys. */
  readonly merged: readonly unknown[];
}

export class NodeFinder {
  readonly #yaml: typeof Yaml;
  readonly #document: Document;
  readonly #pairs = new Map<AnyMap, NamedPairs>();
  #targets: Map<Alias, Node | undefined> | undefined;

  constructor(yaml: typeof Yaml, document: Document) {
    this.#yaml = yaml;
    this.#document = document;
  }

  /** Returns undefined if the document does not have the path. */
  find(path: Path): { readonly key: unknown; readonly node: unknown } | undefined {
    let node: unknown = this.#document.contents;
    let key: unknown = node;
    for (const part of path) {
      node = this.#resolved(node);
      const pair = this.#yaml.isMap(node) ? this.#pair(node, String(part)) : undefined;
      if (pair) [key, node] = [pair.key, pair.value];
      else if (this.#yaml.isSeq(node) && typeof part === 'number' && part < node.items.length)
        key = node = node.items[part];
      else return undefined;
    }
    return { key, node };
  }

  /** Searches the map itself, then the maps that are merged into it, recursively. */
  #pair(map: AnyMap, name: string): AnyPair | undefined {
    const known = new Set<AnyMap>();
    const waiting = [map];
    const spelling = name.includes('_') ? name.replaceAll('_', '').toLowerCase() : undefined;
    for (let each = waiting.pop(); each !== undefined; each = waiting.pop()) {
      if (known.has(each)) continue;
      known.add(each);
      const { written, spelled, merged } = this.#named(each);
      const found = written.get(name) ?? (spelling === undefined ? undefined : spelled.get(spelling));
      if (found) return found;
      for (const from of merged.toReversed()) {
        const target = this.#resolved(from);
        if (this.#yaml.isMap(target)) waiting.push(target);
      }
    }
    return undefined;
  }

  #named(map: AnyMap): NamedPairs {
    let named = this.#pairs.get(map);
    if (named === undefined) this.#pairs.set(map, (named = this.#index(map)));
    return named;
  }

  #index(map: AnyMap): NamedPairs {
    const written = new Map<string, AnyPair>();
    const spelled = new Map<string, AnyPair>();
    const merged: unknown[] = [];
    for (const pair of map.items) {
      if (!this.#yaml.isScalar(pair.key)) continue;
      const name = writtenName(pair.key);
      written.set(name, pair);
      if (!name.includes('_')) spelled.set(name.toLowerCase(), pair);
      if (!isMergeKey(pair.key)) continue;
      for (const from of this.#yaml.isSeq(pair.value) ? pair.value.items : [pair.value]) merged.push(from);
    }
    return { written, spelled, merged };
  }

  #resolved(node: unknown): unknown {
    if (!this.#yaml.isAlias(node)) return node;
    this.#targets ??= aliasTargets(this.#yaml, this.#document);
    return this.#targets.get(node);
  }
}

export function isMergeKey({ value, type }: Scalar): boolean {
  return value === '<<' && type === 'PLAIN';
}

/** Returns a key as it is written, even if it would be a number or boolean as a value: `1.0`, `0400`, `True`. */
export function writtenName({ value, source }: Scalar): string {
  return typeof value === 'string' ? value : (source ?? String(value));
}
