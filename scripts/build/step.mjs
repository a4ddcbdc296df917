// A step of the build, which is left out when nothing has changed since it ran: neither what it reads nor what it has written.
//
// What there was then is in dist/.build, so that a removed dist is built whole. Inputs are compared by their content, because
// checkouts and copies change the times of files; outputs by size and time, because only builds write them.

import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { filesBelow } from './inputs.mjs';

export const RECORDS = 'dist/.build';

export class Step {
  #root;
  #record;
  #isForced;
  #fingerprint;
  #outputs;

  /** `outputs`: files and folders that the step writes. `isForced`: it runs in any case. */
  constructor(root, name, { fingerprint, outputs, isForced }) {
    this.#root = root;
    this.#record = join(root, RECORDS, `${name}.json`);
    this.#fingerprint = fingerprint;
    this.#outputs = outputs;
    this.#isForced = isForced;
  }

  /** Calls `action(isWhole)` if the step has to run; `isWhole`: what it has written before is not as it was. */
  run(action) {
    const before = this.#isForced ? undefined : this.#read();
    const isWhole = before === undefined || !this.#isIntact(before.outputs);
    if (!isWhole && before.fingerprint === this.#fingerprint) return;
    // A step that fails or is interrupted runs again.
    rmSync(this.#record, { force: true });
    action(isWhole);
    mkdirSync(join(this.#root, RECORDS), { recursive: true });
    writeFileSync(this.#record, JSON.stringify({ fingerprint: this.#fingerprint, outputs: this.#written() }));
  }

  #read() {
    try {
      return JSON.parse(readFileSync(this.#record, 'utf8'));
    } catch {
      // It has not run yet, or what it left is damaged.
      return undefined;
    }
  }

  #isIntact(outputs) {
    return Object.entries(outputs).every(([path, state]) => this.#stateOf(path) === state);
  }

  #written() {
    return Object.fromEntries(filesBelow(this.#root, this.#outputs).map((path) => [path, this.#stateOf(path)]));
  }

  #stateOf(path) {
    const stats = statSync(join(this.#root, path), { throwIfNoEntry: false });
    return stats === undefined ? '' : `${stats.size} ${stats.mtimeMs}`;
  }
}
