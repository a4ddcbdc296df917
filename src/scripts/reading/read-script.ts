// Reads a module, evaluates it once, and checks what it defines and the configurations that it gets.

import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { messageOf } from '../../common/errors/errors.js';
import { configMistake } from '../config-value.js';
import { definitionOf } from '../definition.js';
import { type ScriptImage, type ScriptKind, type ScriptSource, type ScriptUse, SOURCE_OF_PACKAGE } from '../image.js';
import { ImageFiles } from '../linking/image-files.js';
import { evaluateScript, type SourceFiles } from '../linking/script-linker.js';
import { scriptErrorText } from '../script-error.js';
import { DiskFiles } from './disk-files.js';
import type { ReadScript, ScriptMistake } from './task.js';

export async function readScript(source: ScriptSource, uses: readonly ScriptUse[]): Promise<ReadScript> {
  const files = new DiskFiles();
  const { name } = source;
  const done = (image: ScriptImage | undefined, mistakes: readonly ScriptMistake[]): ReadScript => ({
    name,
    image,
    mistakes,
    identities: files.identities,
  });
  try {
    const entry = entryOf(source, files);
    const mistakes = await mistakesOf(name, entry, files, uses);
    return done({ name, entry, files: { ...files.sources } }, mistakes);
  } catch (error) {
    const text = scriptErrorText(error, (url) => Object.hasOwn(files.sources, url));
    return done(undefined, [{ path: '', message: `the script '${name}' cannot be used: ${text}` }]);
  }
}

/** Checks configurations with a version that was read before, whatever its files contain now. */
export async function checkUses(image: ScriptImage, uses: readonly ScriptUse[]): Promise<ReadScript> {
  const { entry, name } = image;
  try {
    const mistakes = await mistakesOf(name, entry, new ImageFiles(image), uses);
    return { name, image, mistakes, identities: {} };
  } catch (error) {
    const text = scriptErrorText(error, (url) => Object.hasOwn(image.files, url));
    return {
      name,
      image: undefined,
      mistakes: [{ path: '', message: `the script '${name}' ${text}` }],
      identities: {},
    };
  }
}

async function mistakesOf(
  name: string,
  entry: string,
  files: SourceFiles,
  uses: readonly ScriptUse[],
): Promise<ScriptMistake[]> {
  const exports = await evaluateScript(entry, files);
  const definition = definitionOf(exports);
  const mistakes: ScriptMistake[] = [];
  for (const { config, kind, path } of uses) {
    const mistake = kindMistake(exports, kind) ?? refusal(definition.config, config);
    if (mistake !== undefined) mistakes.push({ path, message: `the script '${name}' ${mistake}` });
  }
  return mistakes;
}

function kindMistake(exports: Readonly<Record<string, unknown>>, kind: ScriptKind): string | undefined {
  try {
    definitionOf(exports, kind);
    return undefined;
  } catch (error) {
    return `cannot be used here: ${messageOf(error)}`;
  }
}

function refusal(validator: unknown, config: unknown): string | undefined {
  const mistake = configMistake(validator, config);
  return mistake && `refuses it: ${mistake}`;
}

/** Returns the URL of the entry. That of a package is a file that exists only here. */
function entryOf({ filename, packageName }: ScriptSource, files: DiskFiles): string {
  if (filename !== undefined) return pathToFileURL(filename).href;
  const url = pathToFileURL(join(process.cwd(), SOURCE_OF_PACKAGE)).href;
  files.sources[url] = { text: `export { default } from ${JSON.stringify(packageName)};`, isJson: false };
  return url;
}
