// Builds the library's document from the events of a faster parser, as far as locating paths needs it. The library itself would
// take several times as long and as much memory.

import type * as Yaml from 'yaml';
import type { Document, Node, Pair, Scalar, YAMLMap, YAMLSeq } from 'yaml';
import type { ValueEvents } from '../value-events.js';

export class NodeBuilder implements ValueEvents {
  readonly #yaml: typeof Yaml;
  readonly #text: string;
  readonly #open: (YAMLMap<Node, Node | null> | YAMLSeq<Node>)[] = [];
  #pair: Pair<Node, Node | null> | undefined;
  #pairs: (Pair<Node, Node | null> | undefined)[] = [];
  #contents: Node | undefined;

  constructor(yaml: typeof Yaml, text: string) {
    this.#yaml = yaml;
    this.#text = text;
  }

  document(): Document {
    const document = new this.#yaml.Document();
    document.contents = this.#contents ?? null;
    return document;
  }

  open(what: 'map' | 'list', at: number): void {
    const node = what === 'map' ? new this.#yaml.YAMLMap<Node, Node | null>() : new this.#yaml.YAMLSeq<Node>();
    node.range = [at, at, at];
    this.#put(node);
    this.#open.push(node);
    this.#pairs.push(this.#pair);
  }

  close(end: number): void {
    const node = this.#open.pop()!;
    node.range = [node.range![0], end, end];
    this.#pair = this.#pairs.pop();
  }

  key(name: string, from: number, to: number): void {
    this.#pair = new this.#yaml.Pair<Node, Node | null>(this.#scalar(name, from, to), null);
    (this.#open.at(-1) as YAMLMap<Node, Node | null>).items.push(this.#pair);
  }

  scalar(value: unknown, from: number, to: number): void {
    this.#put(this.#scalar(value, from, to));
  }

  #put(node: Node): void {
    const holder = this.#open.at(-1);
    if (holder === undefined) this.#contents = node;
    else if (holder instanceof this.#yaml.YAMLSeq) holder.items.push(node);
    else this.#pair!.value = node;
  }

  #scalar(value: unknown, from: number, to: number): Scalar {
    const scalar = new this.#yaml.Scalar(value);
    const first = this.#text[from];
    scalar.type = first === '"' ? 'QUOTE_DOUBLE' : first === "'" ? 'QUOTE_SINGLE' : 'PLAIN';
    if (scalar.type === 'PLAIN') scalar.source = this.#text.slice(from, to);
    scalar.range = [from, to, to];
    return scalar;
  }
}
