// Loads modules that are compiled when Baton is installed, and explains in one sentence why one cannot be loaded.

import { createRequire } from 'node:module';
import { BatonError, messageOf } from '../errors/errors.js';
import { packagePath } from './package-root.js';

const requireHere = createRequire(import.meta.url);

/**
 * Loads a package, or the file at the path `file`. `name`: how errors call it. Errors that are unrelated to how the module
 * was compiled, such as a lack of descriptors, are thrown unchanged.
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
  // The loader skips a file for another processor and then reports it as missing.
  if (/invalid ELF header|wrong ELF class|file too short|cannot open shared object file: No such file/.test(message))
    return `is compiled for another kind of machine than this one (${process.arch}), or damaged`;
  if (/version `[^']+' not found/.test(message)) return `is compiled for another system than this one (${message})`;
  return undefined;
}
