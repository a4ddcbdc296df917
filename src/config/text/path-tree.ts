// Paths at which something is wrong: asked for each field of a configuration, where mostly nothing is.

import type { Path, PathPart } from './path.js';

interface Node {
  readonly below: Map<PathPart, Node>;
  /** Something is wrong here, and not only below. */
  isMarked: boolean;
  /** The number of the first error here or below. */
  first: number;
}

export class PathTree {
  readonly #top = newNode();

  /** An error of that number is at the path. */
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

  /** Whether that very path is marked. */
  has(path: Path): boolean {
    return this.#find(path)?.isMarked ?? false;
  }

  /** The number of the first error at the path or below; infinity without one. */
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
