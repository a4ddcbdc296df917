// Resource files for tests: each version is moved into place, as path_config_source requires.

import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '../harness/index.js';

export class ResourceFile {
  readonly path: string;
  #version = 0;

  constructor(directory: string, name: string) {
    this.path = join(directory, `${name}.yaml`);
  }

  /** Returns a ConfigSource that reads the file. */
  get source(): Config {
    return { resource_api_version: 'V3', path_config_source: { path: this.path } };
  }

  /** Writes the resources. `type`: full name of the message. Returns the version. */
  write(type: string, ...resources: Config[]): string {
    const version = String(++this.#version);
    const held = resources.map((resource) => ({ '@type': `type.googleapis.com/${type}`, ...resource }));
    this.writeText(JSON.stringify({ version_info: version, resources: held }));
    return version;
  }

  writeText(text: string): void {
    writeFileSync(`${this.path}.next`, text);
    renameSync(`${this.path}.next`, this.path);
  }
}
