// The files of a module on the disk. Each is read once, and TypeScript becomes JavaScript.

import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { fileIdentity } from '../../common/files/file-watch.js';
import type { SourceFile } from '../image.js';
import type { SourceFiles } from '../linking/script-linker.js';
import { stripTypes } from './strip-types.js';
import { checkTrust } from './trusted-file.js';

export class DiskFiles implements SourceFiles {
  /** What has been read, by URL. */
  readonly sources: Record<string, SourceFile> = {};
  /** Of the files when they were read, by path; '' for a missing one. */
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
  checkTrust(path);
  const text = readFileSync(path, 'utf8');
  if (ending === '.json') return { text, isJson: true };
  return { text: stripTypes(text, path), isJson: false };
}
