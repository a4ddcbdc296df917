// Reads the files of a module from disk, and converts TypeScript to JavaScript.

import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { fileIdentity } from '../../common/files/file-watch.js';
import type { SourceFile } from '../image.js';
import type { SourceFiles } from '../linking/script-linker.js';
import { stripTypes } from './strip-types.js';
import { checkTrust } from './trusted-file.js';

export class DiskFiles implements SourceFiles {
  /** The files that have been read, by URL. */
  readonly sources: Record<string, SourceFile> = {};
  /** File identities at the time of reading, by path; '' for a missing file. */
  readonly identities: Record<string, string> = {};

  has(url: string): boolean {
    return existsSync(fileURLToPath(url));
  }

  read(url: string): SourceFile {
    const path = fileURLToPath(url);
    this.identities[path] = fileIdentity(path);
    this.sources[url] = readSource(path);
    return this.sources[url];
  }
}

function readSource(path: string): SourceFile {
  const ending = /\.(?:m?ts|m?js|json)$/.exec(path)?.[0];
  if (ending === undefined) throw new Error(`${path}: a module ends with .ts, .mts, .js, .mjs or .json`);
  if (!existsSync(path)) throw new Error(`there is no file ${path}`);
  checkTrust(path);
  const text = readFileSync(path, 'utf8');
  if (ending === '.json') return { text, isJson: true };
  return { text: stripTypes(text, path), isJson: false };
}
