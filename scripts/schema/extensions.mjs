// Reads the names of Envoy's extensions, src/config/api/extensions.txt: lines `category <name>`, and below each, indented, a name with the
// full names of the messages that configure it.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ApiError } from './api-text.mjs';

/** The file, below the folder of the API. */
export const EXTENSIONS_FILE = 'extensions.txt';

const CATEGORY = /^category ([\w.]+)$/;
const EXTENSION = /^ {2}([\w./-]+)((?: [\w.]+)*)$/;

/**
 * Returns the package of the messages by category and name; '' for an extension without messages.
 * @param {string} root the checkout
 * @param {ReadonlyMap<string, object>} types as loadApi() returns them
 * @returns {{[category: string]: {[name: string]: string}}}
 * @throws {ApiError} with file and line
 */
export function loadExtensions(root, types) {
  const file = `src/config/api/${EXTENSIONS_FILE}`;
  const found = {};
  let names;
  readFileSync(join(root, file), 'utf8')
    .split('\n')
    .forEach((line, index) => {
      const fail = (what) => {
        throw new ApiError(`${file}:${index + 1}: ${what}`);
      };
      if (line === '' || line.startsWith('#')) return;
      const category = CATEGORY.exec(line)?.[1];
      if (category !== undefined) {
        if (Object.hasOwn(found, category)) fail(`the category '${category}' is already defined`);
        names = found[category] = {};
        return;
      }
      const [, name, messages] =
        EXTENSION.exec(line) ?? fail(`expected 'category' or the name of an extension, found '${line}'`);
      if (names === undefined) fail("a line 'category <name>' is missing before it");
      if (Object.hasOwn(names, name)) fail(`'${name}' is already defined`);
      const known = messages.split(' ').slice(1);
      for (const message of known) if (!types.has(message)) fail(`there is no message '${message}'`);
      names[name] = known[0]?.replace(/\.[A-Z].*/, '') ?? '';
    });
  return found;
}
