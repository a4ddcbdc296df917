// The file that profiles are written to: admin.profile_path.

import { fstatSync, ftruncate, writeFile } from 'node:fs';
import { promisify } from 'node:util';
import { BatonError, messageOf } from '../../common/errors/errors.js';
import { loadShim, type NativeFile } from '../../io/shim.js';

const truncate = promisify(ftruncate);
const writeContent = promisify(writeFile);

/** What the API says for a configuration without a path. */
const DEFAULT_PATH = '/var/log/envoy/envoy.prof';

export class ProfileFile {
  readonly path: string;
  /** The path is that of the configuration. */
  readonly isConfigured: boolean;

  /** `path`: '' for the default. */
  constructor(path: string) {
    this.path = path || DEFAULT_PATH;
    this.isConfigured = path !== '';
  }

  /** Rejects with a BatonError when the file cannot be written. What it holds stays; an empty one is made if there is none. */
  async check(): Promise<void> {
    await this.#with(async () => {});
  }

  /** Puts a profile in the place of what the file holds. Rejects with a BatonError when that fails. */
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
        remedy: 'admin.profile_path says where profiles are written',
        cause: error,
      });
    } finally {
      await file?.close().catch(() => {});
    }
  }
}
