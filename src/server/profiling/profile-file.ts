// The file that profiles are written to: admin.profile_path.

import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { BatonError, messageOf } from '../../common/errors/errors.js';

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
    await this.#with(0, async () => {});
  }

  /** Puts a profile in the place of what the file holds. Rejects with a BatonError when that fails. */
  async write(profile: Uint8Array): Promise<void> {
    await this.#with(constants.O_TRUNC, (file) => file.writeFile(profile));
  }

  async #with(flags: number, action: (file: FileHandle) => Promise<void>): Promise<void> {
    let file: FileHandle | undefined;
    try {
      // A pipe that nobody reads must not hold anything up.
      file = await open(this.path, constants.O_WRONLY | constants.O_CREAT | constants.O_NONBLOCK | flags, 0o644);
      if (!(await file.stat()).isFile()) throw new Error('it is no regular file');
      await action(file);
    } catch (error) {
      throw new BatonError('PROFILE_UNWRITABLE', `${this.path} cannot be written: ${messageOf(error)}`, {
        remedy: 'admin.profile_path says where profiles are written',
        cause: error,
      });
    } finally {
      await file?.close();
    }
  }
}
