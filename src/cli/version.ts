// The text of --version.

import { fullVersionString } from '../common/package/version.js';

export function versionText(): string {
  return `\nbaton  version: ${fullVersionString()}\n\n`;
}
