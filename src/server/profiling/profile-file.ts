// The file to which profiles are written: admin.profile_path.

import { fstatSync, ftruncate, writeFile } from 'node:fs';
import { promisify } from 'node:util';
import { BatonError, messageOf } from '../../common/errors/errors.js';
import { loadShim, type NativeFile } from '../../io/shim.js';

const truncate = promisify(ftruncate);
const writeContent = promisify(writeFile);

/** Envoy's default path for a configuration without one. */
const DEFAULT_PATH = '/var/log/envoy/envoy.prof';

export class ProfileFile {
  readonly path: string;
  /** The path comes from the configuration. */
  readonly isConfigured: boolean;

  /** `path`: '' selects the default. */
  constructor(path: string) {
    this.path = path || DEFAULT_PATH;
    this.isConfigured = path !== '';
  }

  /** Rejects with a BatonError when the file cannot be written. Keeps its content; creates an empty file if there is none. */
  async check(): Promise<void> {
    await this.#with(async () => {});
  }

  /** Replaces the content of the file with a profile. Rejects with a BatonError when that fails. */
  async write(profile: Uint8Array): Promise<void> {
    await this.#with(async (fd) => {
      await truncate(fd, 0);
      await writeContent(fd, profile);
    });
  }

  async #with(action: (fd: number) => Promise<void>): Promise<void> {
    let file: NativeFile | undefined;
    try {
      file = await loadShim().openOutputLater(this.path, false);
      if (!fstatSync(file.fd).isFile()) throw new Error('it is not a regular file');
      await action(file.fd);
      await file.close();
    } catch (error) {
      throw new BatonError('PROFILE_UNWRITABLE', `${this.path} cannot be written: ${messageOf(error)}`, {
        remedy: 'admin.profile_path sets the file for profiles',
        cause: error,
      });
    } finally {
      await file?.close().catch(() => {});
    }
  }
}
