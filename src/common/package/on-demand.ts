// Modules that are loaded on first use, when descriptors may be short. Before version 22, Node keeps the failure of an
// import: the module stays unusable even when descriptors are available again. So no import is started that could fail for
// lack of descriptors.

import { closeSync, openSync } from 'node:fs';

/** More than Node opens at the same time to load a part of the bundled program. */
const DESCRIPTORS = 8;

/** Returns a function that loads a module once. It rejects while descriptors are short; a later call retries. */
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

/** Throws if DESCRIPTORS descriptors cannot be opened now. */
function checkDescriptors(): void {
  const held: number[] = [];
  try {
    while (held.length < DESCRIPTORS) held.push(openSync('/dev/null', 'r'));
  } finally {
    for (const descriptor of held) closeSync(descriptor);
  }
}
