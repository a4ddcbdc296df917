// Reads a message from a file. The file extension selects the format; with any other extension the file is read as JSON.

import { extname } from 'node:path';
import { messageOf } from '../../common/errors/errors.js';
import { readRegularFile } from '../../common/files/regular-file.js';
import { problemOf } from '../text/problem.js';
import { readJson, readYaml } from '../text/read-text.js';
import type { SourceResult } from '../text/source.js';
import { readProto } from './proto-source.js';

/** The content of a file, or the reason why it cannot be read. */
export type FileSourceResult = SourceResult & {
  /** The file does not exist or is not readable; the problem is independent of its content. */
  readonly isUnreadable?: boolean;
};

/** Configuration files above this size are refused. */
const MAX_FILE_BYTES = 128 * 1024 * 1024;

/**
 * @param message full name of the message, for protobuf formats
 * @param pipeMs how long to wait for a pipe; undefined: pipes are refused
 */
export function readFileSource(path: string, message: string, pipeMs?: number): FileSourceResult {
  const extension = extname(path);
  const format = extension.toLowerCase();
  let bytes: Buffer;
  try {
    bytes = readRegularFile(path, MAX_FILE_BYTES, pipeMs);
  } catch (error) {
    return { ...refuse(path, `unable to read file: ${reasonOf(error)}`), isUnreadable: true };
  }
  if (format === '.pb') return readProto(path, 'binary', bytes, message);
  const text = decodeText(bytes);
  if (text === undefined) return refuse(path, 'the file is not UTF-8 text');
  if (format === '.pb_text') return readProto(path, 'text', text, message);
  if (format === '.yaml' || format === '.yml') return readYaml(path, text);
  const read = readJson(path, text);
  return format === '.json' || read.source !== undefined ? read : readAsJson(extension, read);
}

/** Reads a message from JSON of the origin `name`. */
export function readJsonSource(name: string, json: Uint8Array): SourceResult {
  const text = decodeText(json);
  return text === undefined ? refuse(name, 'it is not UTF-8 text') : readJson(name, text);
}

/** Returns a result whose first problem says why the file was read as JSON. */
function readAsJson(extension: string, { problems: [first, ...others] }: SourceResult): SourceResult {
  const ending = extension === '' ? 'a file without an extension' : `a file that ends in '${extension}'`;
  const why = `${ending} is read as JSON; the extensions of other formats are ${OTHER_FORMATS}`;
  return { problems: [{ ...first!, message: `${first!.message}; ${why}` }, ...others] };
}

const OTHER_FORMATS = '.yaml, .yml, .pb and .pb_text';

/** Returns `no such file or directory` for `ENOENT: no such file or directory, open '…'`. */
function reasonOf(error: unknown): string {
  return messageOf(error).replace(/^[A-Z0-9_]+: ([^,]*).*$/s, '$1');
}

function decodeText(bytes: Uint8Array): string | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return text.includes('\0') ? undefined : text;
  } catch {
    return undefined;
  }
}

function refuse(path: string, message: string): SourceResult {
  return { problems: [problemOf(path, message)] };
}
