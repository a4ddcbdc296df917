// What a step of the build reads, as one text: another one when any of these files has other content, is new, or is gone.

import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

export class Inputs {
  #root;
  /** path → hash of the content: each file is read once. */
  #known = new Map();

  constructor(root) {
    this.#root = root;
  }

  /** `paths`: files and folders below the root; what is not there counts as such. `isWanted` gets each path. */
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

/** Paths of all files that these paths name or have below them, sorted. */
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
