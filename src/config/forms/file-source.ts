// A message in a file; the extension of the path says in which form.

import { extname } from 'node:path';
import { messageOf } from '../../common/errors/errors.js';
import { readRegularFile } from '../../common/files/regular-file.js';
import { problemOf } from '../text/problem.js';
import { readJson, readYaml } from '../text/read-text.js';
import type { SourceResult } from '../text/source.js';
import { readProto } from './proto-source.js';

/** What a file holds, or why there is nothing to be had of it. */
export type FileSourceResult = SourceResult & {
  /** It is not there, or may not be read: its content has nothing to do with it. */
  readonly isUnreadable?: boolean;
};

/** Configuration files above this size are refused. */
const MAX_FILE_BYTES = 128 * 1024 * 1024;

/**
 * @param message full name of the message, for the forms of protobuf
 * @param pipeMs how long to wait for a pipe; undefined: pipes are refused
 */
export function readFileSource(path: string, message: string, pipeMs?: number): FileSourceResult {
  const extension = extname(path);
  const format = extension.toLowerCase();
  if (!FORMATS.includes(format)) {
    return refuse(path, `unknown extension '${extension}': a configuration file ends in ${FORMATS.join(', ')}`);
  }
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
  return format === '.json' ? readJson(path, text) : readYaml(path, text);
}

/** `no such file or directory` of `ENOENT: no such file or directory, open '…'`. */
function reasonOf(error: unknown): string {
  return messageOf(error).replace(/^[A-Z0-9_]+: ([^,]*).*$/s, '$1');
}

const FORMATS = ['.yaml', '.yml', '.json', '.pb', '.pb_text'];

function decodeText(bytes: Buffer): string | undefined {
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
