// Modules that are loaded when they are first needed, at a time when descriptors may be short. Before version 22 Node keeps the failure
// of an import: it fails for ever, long after there are descriptors again. So no import begins that could fail for want of them.

import { closeSync, openSync } from 'node:fs';

/** More than Node opens at a time for a part of the bundled program. */
const DESCRIPTORS = 8;

/**
 * A function that loads a module, once. It rejects when there are too few descriptors, and loads it when it is called again and there
 * are enough.
 */
export function onDemand<T>(load: () => Promise<T>): () => Promise<T> {
  let loading: Promise<T> | undefined;
  return async () => {
    if (loading === undefined) {
      checkDescriptors();
      loading = load();
      loading.catch(() => {
        loading = undefined;
      });
    }
    return loading;
  };
}

/** Throws when so many descriptors cannot be had now. */
function checkDescriptors(): void {
  const held: number[] = [];
  try {
    while (held.length < DESCRIPTORS) held.push(openSync('/dev/null', 'r'));
  } finally {
    for (const descriptor of held) closeSync(descriptor);
  }
}
