// Whether a log file could be opened, found without opening it.

import { accessSync, constants, lstatSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { BatonError, messageOf } from '../../common/errors/errors.js';

/**
 * Refuses a path that cannot be appended to: a directory, no permission, or no directory to make the file in. Nothing is
 * opened or made.
 * @throws BatonError CONFIG_INVALID
 */
export function checkWritable(path: string): void {
  try {
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat?.isDirectory()) throw new Error('it is a directory');
    accessSync(stat === undefined ? dirname(newFileOf(path)) : path, constants.W_OK);
  } catch (error) {
    throw new BatonError('CONFIG_INVALID', `unable to open file '${path}': ${messageOf(error)}`, { cause: error });
  }
}

/** What opening a path makes when there is nothing: a link that leads nowhere has its file made where it leads. */
function newFileOf(path: string): string {
  const target = targetOf(path);
  return target === undefined ? path : newFileOf(resolve(realpathSync(dirname(path)), target));
}

/** Undefined when it is no link. */
function targetOf(path: string): string | undefined {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true ? readlinkSync(path) : undefined;
}
