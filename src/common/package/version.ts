// The version of this build.

import { readFileSync } from 'node:fs';
import { BUILD } from './generated/build.js';
import { packagePath } from './package-root.js';

/** Returns the release number, such as `0.1.0`. */
export function releaseNumber(): string {
  release ??= (JSON.parse(readFileSync(packagePath('package.json'), 'utf8')) as { version: string }).version;
  return release;
}

/** Returns `{revision}/{version}/{status}/{build type}`, as /server_info shows it. */
export function versionString(): string {
  return `${BUILD.revision}/${releaseNumber()}/${BUILD.status}/RELEASE`;
}

/** Returns the version with the TLS library, as --version and %N print it. */
export function fullVersionString(): string {
  return `${versionString()}/OpenSSL`;
}

let release: string | undefined;
