// Reads a module, evaluates it once, and checks what it defines and the configurations that it gets.

import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { configMistake } from '../config-value.js';
import { definitionOf } from '../definition.js';
import { type ScriptImage, type ScriptSource, type ScriptUse, SOURCE_OF_PACKAGE } from '../image.js';
import { evaluateScript } from '../linking/script-linker.js';
import { scriptErrorText } from '../script-error.js';
import { DiskFiles } from './disk-files.js';
import type { ReadScript } from './task.js';

export async function readScript(source: ScriptSource, uses: readonly ScriptUse[]): Promise<ReadScript> {
  const files = new DiskFiles();
  const { name } = source;
  const done = (image: ScriptImage | undefined, mistakes: readonly string[]): ReadScript => ({
    name,
    image,
    mistakes,
    identities: files.identities,
  });
  try {
    const entry = entryOf(source, files);
    const exports = await evaluateScript(entry, files);
    const definition = definitionOf(exports);
    const mistakes: string[] = [];
    for (const { config, kind, path } of uses) {
      definitionOf(exports, kind);
      const mistake = configMistake(definition.config, config);
      if (mistake !== undefined) mistakes.push(`${path}.config: the script '${name}' refuses it: ${mistake}`);
    }
    return done({ name, entry, files: { ...files.sources } }, mistakes);
  } catch (error) {
    const text = scriptErrorText(error, (url) => Object.hasOwn(files.sources, url));
    return done(undefined, [`the script '${name}' cannot be used: ${text}`]);
  }
}

/** Returns the URL of the entry. That of a package is a file that exists only here. */
function entryOf({ filename, packageName }: ScriptSource, files: DiskFiles): string {
  if (filename !== undefined) return pathToFileURL(filename).href;
  const url = pathToFileURL(join(process.cwd(), SOURCE_OF_PACKAGE)).href;
  files.sources[url] = { text: `export { default } from ${JSON.stringify(packageName)};`, isJson: false };
  return url;
}
