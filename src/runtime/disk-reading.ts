// One reading of all disk layers, in slices of time: a large tree holds up nothing else on the primary.

import { BatonError, messageOf } from '../common/errors/errors.js';
import { atOnce } from '../common/time/next-turn.js';
import { forEachGuarded } from '../log/internal-errors.js';
import { readDiskLayer } from './disk-layer.js';
import type { Layer } from './layer.js';

/** How long one slice may take. */
const SLICE_MS = 5;

/** A directory, and who gets what was read of it. */
export interface DiskSource {
  readonly name: string;
  readonly directory: string;
  /** `failure` says why there is no layer although there is a directory. */
  loaded(layer: Layer | undefined, failure: string | undefined): void;
}

export class DiskReading {
  readonly #sources: readonly DiskSource[];
  readonly #done: () => void;
  #steps: Generator<void, readonly Result[]>;
  #next: NodeJS.Immediate | undefined;
  /** Something has changed since the reading began. */
  #isOutdated = false;

  /** `done` is called when all sources have been told what was read. */
  constructor(sources: readonly DiskSource[], done: () => void) {
    this.#sources = sources;
    this.#done = done;
    this.#steps = readAll(sources);
  }

  /** Reads in later turns. While it reads, another call makes it read once more: what it has may be of two trees. */
  begin(): void {
    if (this.#next !== undefined) this.#isOutdated = true;
    else this.#next = setImmediate(() => this.#slice());
  }

  /** Reads to the end now. */
  finish(): void {
    this.#tell(atOnce(this.#steps));
  }

  cancel(): void {
    clearImmediate(this.#next);
  }

  #slice(): void {
    const end = performance.now() + SLICE_MS;
    do {
      const step = this.#steps.next();
      if (!step.done) continue;
      if (!this.#isOutdated) return this.#tell(step.value);
      this.#isOutdated = false;
      this.#steps = readAll(this.#sources);
    } while (performance.now() < end);
    this.#next = setImmediate(() => this.#slice());
  }

  #tell(results: readonly Result[]): void {
    forEachGuarded(results.entries(), 'internal error: a runtime layer cannot be used', ([index, result]) => {
      this.#sources[index]!.loaded(result.layer, result.failure);
    });
    this.#done();
  }
}

interface Result {
  readonly layer: Layer | undefined;
  readonly failure: string | undefined;
}

function* readAll(sources: readonly DiskSource[]): Generator<void, readonly Result[]> {
  const results: Result[] = [];
  for (const { name, directory } of sources) {
    try {
      results.push({ layer: yield* readDiskLayer(name, directory), failure: undefined });
    } catch (error) {
      results.push({ layer: undefined, failure: error instanceof BatonError ? error.describe() : messageOf(error) });
    }
  }
  return results;
}
