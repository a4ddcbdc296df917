// One module on a worker: the version that new requests use.

import { type Definitions, definitionOf } from './definition.js';
import type { ScriptImage, ScriptKind } from './image.js';
import { ImageFiles } from './linking/image-files.js';
import { evaluateScript } from './linking/script-linker.js';
import type { PublishedScript } from './published.js';
import { functionPlace, scriptErrorText, scriptPlace } from './script-error.js';

export class WorkerScript {
  readonly name: string;
  /** The generation of the version in use; 0: there is none. Filters compare it to detect a new version. */
  generation = 0;
  #exports: Readonly<Record<string, unknown>> = {};
  /** The files of the version in use. V8 has their texts in any case. */
  #image: ScriptImage | undefined;
  /** URLs of the files of all versions: requests in flight still use older ones. */
  readonly #files = new Set<string>();
  /** The generation of the last version that was received. */
  #latest = 0;

  constructor(name: string) {
    this.name = name;
  }

  /** Evaluates a version unless it is known. The previous version stays in use until then, and if this rejects. */
  async load({ generation, image }: PublishedScript): Promise<void> {
    if (generation <= this.#latest) return;
    this.#latest = generation;
    for (const url of Object.keys(image.files)) this.#files.add(url);
    const exports = await evaluateScript(image.entry, new ImageFiles(image));
    definitionOf(exports);
    // A later version was loaded in the meantime.
    if (generation < this.generation) return;
    this.generation = generation;
    this.#exports = exports;
    this.#image = image;
  }

  /** Returns what the version in use defines. Throws if it defines something of another kind, or if there is no version. */
  definition<K extends ScriptKind>(kind: K): Definitions[K] {
    if (this.generation === 0) throw new Error(`the script '${this.name}' could not be loaded`);
    return definitionOf(this.#exports, kind);
  }

  /** Returns whether an exception comes from the module's files. */
  isIn(thrown: unknown): boolean {
    return thrown instanceof Error && scriptPlace(thrown, (url) => this.#files.has(url)) !== undefined;
  }

  /** Describes an exception of the module, with its position in the module's files, or otherwise that of `hook`, which has failed. */
  errorText(thrown: unknown, hook?: unknown): string {
    return scriptErrorText(
      thrown,
      (url) => this.#files.has(url),
      () => functionPlace(hook, this.#sources()),
    );
  }

  *#sources(): Generator<readonly [string, string]> {
    for (const [url, { text }] of Object.entries(this.#image?.files ?? {})) yield [url, text];
  }
}
