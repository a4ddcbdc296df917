// What the aliases of a document stand for. To look one up takes the library a walk through the document, and there may be many; its own
// way to visit all nodes copies the path of each.

import type { Alias, Document, isAlias, isMap, isSeq, Node } from 'yaml';

/** What the search needs of the YAML library. */
export interface NodeKinds {
  readonly isAlias: typeof isAlias;
  readonly isMap: typeof isMap;
  readonly isSeq: typeof isSeq;
}

export function aliasTargets({ isAlias, isMap, isSeq }: NodeKinds, document: Document): Map<Alias, Node | undefined> {
  const targets = new Map<Alias, Node | undefined>();
  const anchors = new Map<string, Node>();
  const visit = (node: unknown): void => {
    if (isAlias(node)) return void targets.set(node, anchors.get(node.source));
    const { anchor } = (node ?? {}) as { readonly anchor?: string };
    if (anchor !== undefined) anchors.set(anchor, node as Node);
    if (isSeq(node)) for (const item of node.items) visit(item);
    else if (isMap(node)) {
      for (const { key, value } of node.items) {
        visit(key);
        visit(value);
      }
    }
  };
  visit(document.contents);
  return targets;
}
