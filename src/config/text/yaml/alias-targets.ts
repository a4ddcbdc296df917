// Resolves all aliases of a document in one pass. The library resolves each alias by a walk through the document, and its own
// visitor copies the path of every node.

import type { Alias, Document, isAlias, isMap, isSeq, Node } from 'yaml';

/** The parts of the YAML library that the search uses. */
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
