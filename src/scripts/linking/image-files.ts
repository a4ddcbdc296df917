// The files of an image.

import type { ScriptImage, SourceFile } from '../image.js';
import type { SourceFiles } from './script-linker.js';

export class ImageFiles implements SourceFiles {
  readonly #image: ScriptImage;

  constructor(image: ScriptImage) {
    this.#image = image;
  }

  has(url: string): boolean {
    return Object.hasOwn(this.#image.files, url);
  }

  read(url: string): SourceFile {
    if (this.has(url)) return this.#image.files[url]!;
    throw new Error(`${url} was not loaded with the module: import it at the top of a file`);
  }
}
