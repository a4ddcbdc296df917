// Finds the template that a path matches. Literals are preferred to `*`, and `*` to `**`, from the first segment on.

import { MANY, ONE, type PathTemplate } from './path-template.js';

interface Match<T> {
  readonly target: T;
}

class Node<T> {
  readonly children = new Map<string, Node<T>>();
  /** By HTTP method and verb. `undefined`: several templates are the same, so that none of them matches. */
  readonly targets = new Map<string, Match<T> | undefined>();
}

export class PathTree<T> {
  readonly #root = new Node<T>();
  readonly #verbs = new Set<string>();
  readonly #takesAllVerbs: boolean;

  /** `takesAllVerbs`: text after the last colon is a verb even if no template has it. */
  constructor(takesAllVerbs: boolean) {
    this.#takesAllVerbs = takesAllVerbs;
  }

  /** Adds a template. Returns false if an equal one exists: then neither of them matches. */
  add(method: string, template: PathTemplate, target: T): boolean {
    let node = this.#root;
    for (const segment of template.segments) {
      let child = node.children.get(segment);
      if (child === undefined) {
        child = new Node<T>();
        node.children.set(segment, child);
      }
      node = child;
    }
    if (template.verb !== '') this.#verbs.add(template.verb);
    const key = targetKey(method, template.verb);
    const isNew = !node.targets.has(key);
    node.targets.set(key, isNew ? { target } : undefined);
    return isNew;
  }

  /** Splits a path, without a query, into the segments that find() gets, and the verb. */
  split(path: string): { segments: string[]; verb: string } {
    let verb = '';
    const colon = path.lastIndexOf(':');
    if (colon > path.lastIndexOf('/')) {
      const found = path.slice(colon + 1);
      if (this.#takesAllVerbs || this.#verbs.has(found)) {
        verb = found;
        path = path.slice(0, colon);
      }
    }
    const segments = path.slice(1).split('/');
    while (segments.at(-1) === '') segments.pop();
    return { segments, verb };
  }

  find(method: string, segments: readonly string[], verb: string): T | undefined {
    const search = new Search<T>(targetKey(method, verb), targetKey('*', verb), segments);
    return search.from(this.#root, 0)?.target;
  }
}

function targetKey(method: string, verb: string): string {
  return `${method} ${verb}`;
}

/** One look-up. Its recursion is as deep as the templates have segments, because literals follow a `**` without another choice. */
class Search<T> {
  readonly #key: string;
  readonly #anyKey: string;
  readonly #segments: readonly string[];

  constructor(key: string, anyKey: string, segments: readonly string[]) {
    this.#key = key;
    this.#anyKey = anyKey;
    this.#segments = segments;
  }

  from(node: Node<T>, at: number): Match<T> | undefined {
    const segment = this.#segments[at];
    if (segment === undefined) {
      const own = this.#targetOf(node);
      if (own !== undefined) return own;
      // A `**` may also match nothing.
      const many = node.children.get(MANY);
      return many && this.#targetOf(many);
    }
    const literal = segment === ONE || segment === MANY ? undefined : node.children.get(segment);
    const one = node.children.get(ONE);
    return (
      (literal && this.from(literal, at + 1)) ??
      (one && this.from(one, at + 1)) ??
      this.#many(node.children.get(MANY), at)
    );
  }

  /** Looks for the literals after a `**`, at the end of the path. */
  #many(node: Node<T> | undefined, at: number): Match<T> | undefined {
    if (node === undefined) return undefined;
    for (let next = at + 1; next < this.#segments.length; next++) {
      const child = node.children.get(this.#segments[next]!);
      const found = child && this.from(child, next + 1);
      if (found !== undefined) return found;
    }
    return this.#targetOf(node);
  }

  #targetOf(node: Node<T>): Match<T> | undefined {
    return node.targets.get(this.#key) ?? node.targets.get(this.#anyKey);
  }
}
