// The fields of a request message that come from the path and from query parameters, as a tree. A body is merged with it.

import type { FieldDescriptor } from '../../../protobuf/types.js';

export class BindingTree {
  /** Texts with one character a byte. */
  readonly values = new Map<FieldDescriptor, string[]>();
  readonly messages = new Map<FieldDescriptor, BindingTree>();

  get isEmpty(): boolean {
    return this.values.size === 0 && this.messages.size === 0;
  }

  add(path: readonly FieldDescriptor[], text: string): void {
    let tree: BindingTree = this;
    for (let index = 0; index < path.length - 1; index++) tree = tree.#inner(path[index]!);
    const last = path.at(-1)!;
    const texts = tree.values.get(last);
    if (texts === undefined) tree.values.set(last, [text]);
    else texts.push(text);
  }

  /** Removes the values of a field, and returns them. */
  take(field: FieldDescriptor): readonly string[] {
    const texts = this.values.get(field);
    if (texts === undefined) return NONE;
    this.values.delete(field);
    return texts;
  }

  /** Removes the values within a field, and returns them. */
  takeWithin(field: FieldDescriptor): BindingTree | undefined {
    const tree = this.messages.get(field);
    if (tree !== undefined) this.messages.delete(field);
    return tree;
  }

  #inner(field: FieldDescriptor): BindingTree {
    let tree = this.messages.get(field);
    if (tree === undefined) {
      tree = new BindingTree();
      this.messages.set(field, tree);
    }
    return tree;
  }
}

const NONE: readonly string[] = [];
