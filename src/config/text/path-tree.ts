// Paths with errors. Looked up for every field of a configuration, mostly without a match.

import type { Path, PathPart } from './path.js';

interface Node {
  readonly below: Map<PathPart, Node>;
  /** The path itself has an error, not only a path below it. */
  isMarked: boolean;
  /** Number of the first error at the path or below. */
  first: number;
}

export class PathTree {
  readonly #top = newNode();

  /** Records an error with that number at the path. */
  note(path: Path, number: number): void {
    let node = this.#top;
    node.first = Math.min(node.first, number);
    for (const part of path) {
      node = below(node, part);
      node.first = Math.min(node.first, number);
    }
    node.isMarked = true;
  }

  /** Marks the path without an error. */
  mark(path: Path): void {
    let node = this.#top;
    for (const part of path) node = below(node, part);
    node.isMarked = true;
  }

  /** Returns whether exactly this path is marked. */
  has(path: Path): boolean {
    return this.#find(path)?.isMarked ?? false;
  }

  /** Returns the number of the first error at the path or below; infinity if there is none. */
  firstAt(path: Path): number {
    return this.#find(path)?.first ?? Number.POSITIVE_INFINITY;
  }

  #find(path: Path): Node | undefined {
    let node: Node | undefined = this.#top;
    for (let index = 0; node !== undefined && index < path.length; index++) node = node.below.get(path[index]!);
    return node;
  }
}

function below(node: Node, part: PathPart): Node {
  let found = node.below.get(part);
  if (found === undefined) node.below.set(part, (found = newNode()));
  return found;
}

function newNode(): Node {
  return { below: new Map(), isMarked: false, first: Number.POSITIVE_INFINITY };
}
