// The files of a module on the disk. Each is read once, and TypeScript becomes JavaScript.

import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { fileIdentity } from '../../common/files/file-watch.js';
import type { SourceFile } from '../image.js';
import type { SourceFiles } from '../linking/script-linker.js';
import { stripTypes } from './strip-types.js';

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

const OTHERS_WRITE = 0o002;
const STICKY = 0o1000;

/** Throws if every user may change the file: it runs with the rights of this process. */
function checkTrust(path: string): void {
  if ((statSync(path).mode & OTHERS_WRITE) !== 0)
    throw new Error(`every user may write to ${path}: run chmod o-w ${path}`);
  const directory = dirname(path);
  const { mode } = statSync(directory);
  if ((mode & OTHERS_WRITE) !== 0 && (mode & STICKY) === 0)
    throw new Error(`every user may replace ${path}: run chmod o-w ${directory}`);
}
