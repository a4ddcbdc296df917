// Loads a configuration text through a real file.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExtensionCatalog } from '../../src/config/catalog/extension.js';
import type { Bootstrap } from '../../src/config/generated/api.js';
import { type LoadResult, loadConfiguration } from '../../src/config/load/load.js';
import type { LoadOptions } from '../../src/config/load/load-options.js';
import { formatProblems } from '../../src/config/text/problem.js';
import { testCatalog } from './catalog.js';

export interface TextOptions extends Omit<LoadOptions, 'path'> {
  readonly file?: string;
  readonly catalog?: ExtensionCatalog;
}

/** Writes the text to a file, loads it, and removes it. */
export function loadText(text: string | Uint8Array, options: TextOptions = {}): LoadResult {
  return withFile(text, options.file ?? 'baton.yaml', (path) => {
    const { file: _file, catalog = testCatalog(), ...rest } = options;
    return loadConfiguration({ path, ...rest }, catalog);
  });
}

/** Returns the errors that the user sees, without the file's directory. */
export function problemsOf(text: string | Uint8Array, options: TextOptions = {}): string {
  const result = loadText(text, options);
  return result.ok
    ? ''
    : formatProblems(result.errors).replaceAll(/\S*\/(?=[^/\s]+\.(yaml|yml|json|pb|pb_text|txt)\b)/g, '');
}

/** Returns the bootstrap, or throws an error with the problems. */
export function bootstrapOf(text: string | Uint8Array, options: TextOptions = {}): Bootstrap {
  const result = loadText(text, options);
  if (!result.ok) throw new Error(formatProblems(result.errors));
  return result.bootstrap;
}

export function withFile<T>(text: string | Uint8Array, name: string, use: (path: string) => T): T {
  const folder = mkdtempSync(join(tmpdir(), 'baton-config-'));
  try {
    const path = join(folder, name);
    writeFileSync(path, text);
    return use(path);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
