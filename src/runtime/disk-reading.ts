// Reads all disk layers in time slices, so that a large tree does not block the primary.

import { BatonError, messageOf } from '../common/errors/errors.js';
import { runSync } from '../common/time/next-turn.js';
import { forEachGuarded } from '../log/internal-errors.js';
import { readDiskLayer } from './disk-layer.js';
import type { Layer } from './layer.js';

/** Maximum duration of a slice. */
const SLICE_MS = 5;

/** A directory, and the receiver of its layer. */
export interface DiskSource {
  readonly name: string;
  readonly directory: string;
  /** `failure`: why there is no layer although the directory exists. */
  loaded(layer: Layer | undefined, failure: string | undefined): void;
}

export class DiskReading {
  readonly #sources: readonly DiskSource[];
  readonly #done: () => void;
  #steps: Generator<void, readonly Result[]>;
  #next: NodeJS.Immediate | undefined;
  /** The tree has changed since the reading began. */
  #isOutdated = false;

  /** `done` is called after the layers were passed to all sources. */
  constructor(sources: readonly DiskSource[], done: () => void) {
    this.#sources = sources;
    this.#done = done;
    this.#steps = readAll(sources);
  }

  /** Reads in later turns. A call during a reading restarts it at the end, because the result may mix two trees. */
  begin(): void {
    if (this.#next !== undefined) this.#isOutdated = true;
    else this.#next = setImmediate(() => this.#slice());
  }

  /** Reads all layers synchronously. */
  finish(): void {
    this.#deliver(runSync(this.#steps));
  }

  cancel(): void {
    clearImmediate(this.#next);
  }

  #slice(): void {
    const end = performance.now() + SLICE_MS;
    do {
      const step = this.#steps.next();
      if (!step.done) continue;
      if (!this.#isOutdated) return this.#deliver(step.value);
      this.#isOutdated = false;
      this.#steps = readAll(this.#sources);
    } while (performance.now() < end);
    this.#next = setImmediate(() => this.#slice());
  }

  #deliver(results: readonly Result[]): void {
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
