// Reads a message from a file. The file extension selects the format.

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

/** Returns `no such file or directory` for `ENOENT: no such file or directory, open '…'`. */
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
