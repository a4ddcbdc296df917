// A build step, which is skipped if neither its inputs nor its outputs have changed since it ran.
//
// The state after the last run is in dist/.build, so a deleted dist is rebuilt completely. Inputs are compared by content,
// because checkouts and copies change modification times; outputs by size and time, because only builds write them.

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

  /** `outputs`: files and folders that the step writes. `isForced`: it always runs. */
  constructor(root, name, { fingerprint, outputs, isForced }) {
    this.#root = root;
    this.#record = join(root, RECORDS, `${name}.json`);
    this.#fingerprint = fingerprint;
    this.#outputs = outputs;
    this.#isForced = isForced;
  }

  /** Calls `action(isWhole)` if the step must run. `isWhole`: its previous outputs have been changed. */
  run(action) {
    const before = this.#isForced ? undefined : this.#read();
    const isWhole = before === undefined || !this.#isIntact(before.outputs);
    if (!isWhole && before.fingerprint === this.#fingerprint) return;
    // A step that fails or is interrupted must run again.
    rmSync(this.#record, { force: true });
    action(isWhole);
    mkdirSync(join(this.#root, RECORDS), { recursive: true });
    writeFileSync(this.#record, JSON.stringify({ fingerprint: this.#fingerprint, outputs: this.#written() }));
  }

  #read() {
    try {
      return JSON.parse(readFileSync(this.#record, 'utf8'));
    } catch {
      // It has not run yet, or its record is damaged.
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
