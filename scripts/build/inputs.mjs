// The inputs of a build step as one text, which differs when a file has changed, was added or was removed.

import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

export class Inputs {
  #root;
  /** Hashes of contents by path. Each file is read once. */
  #known = new Map();

  constructor(root) {
    this.#root = root;
  }

  /** `paths`: files and folders below the root; missing ones are recorded as missing. `isWanted` filters the paths. */
  fingerprint(paths, isWanted = () => true) {
    const sum = createHash('sha256');
    for (const path of filesBelow(this.#root, paths).filter(isWanted)) sum.update(`${path} ${this.#hashOf(path)}\n`);
    return sum.digest('hex');
  }

  #hashOf(path) {
    let hash = this.#known.get(path);
    if (hash === undefined) {
      hash = createHash('sha256')
        .update(readFileSync(join(this.#root, path)))
        .digest('hex');
      this.#known.set(path, hash);
    }
    return hash;
  }
}

/** Returns the sorted paths of all files at or below these paths. */
export function filesBelow(root, paths) {
  return paths
    .flatMap((path) => {
      const stats = statSync(join(root, path), { throwIfNoEntry: false });
      if (stats === undefined) return [];
      if (!stats.isDirectory()) return [path];
      const entries = readdirSync(join(root, path), { recursive: true, withFileTypes: true });
      return entries
        .filter((entry) => !entry.isDirectory())
        .map(({ parentPath, name }) => join(parentPath, name).slice(root.length + 1));
    })
    .sort();
}
