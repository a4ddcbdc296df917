// Loads what is compiled when Baton is installed, and says in one sentence why that is not possible.

import { createRequire } from 'node:module';
import { BatonError, messageOf } from '../errors/errors.js';
import { packagePath } from './package-root.js';

const requireHere = createRequire(import.meta.url);

/**
 * A package, or the file at the path `file`; `name` is what it is called then. An error that has nothing to do with how it was
 * compiled, such as too few descriptors, is thrown as it is.
 * @throws BatonError INSTALLATION_BROKEN
 */
export function loadNative(name: string, file = name): unknown {
  try {
    return requireHere(file);
  } catch (error) {
    const reason = reasonFor(error);
    if (reason === undefined) throw error;
    const remedy = `run 'npm run install' in ${packagePath()} with the Node.js that runs Baton`;
    throw new BatonError('INSTALLATION_BROKEN', `${name} ${reason}: ${remedy}`, { cause: error });
  }
}

function reasonFor(error: unknown): string | undefined {
  const message = messageOf(error);
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'MODULE_NOT_FOUND' || message.startsWith('Could not locate the bindings file')) return 'is not compiled';
  if (/compiled against a different Node\.js version|did not self-register|undefined symbol/.test(message))
    return `is compiled for another version of Node.js than this one (${process.version})`;
  // The loader passes over a file for another processor, and then misses it.
  if (/invalid ELF header|wrong ELF class|file too short|cannot open shared object file: No such file/.test(message))
    return `is compiled for another kind of machine than this one (${process.arch}), or damaged`;
  if (/version `[^']+' not found/.test(message)) return `is compiled for another system than this one (${message})`;
  return undefined;
}
