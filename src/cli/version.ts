// The text of --version.

import { fullVersionString } from '../common/version.js';

/** @param program how the program was called */
export function versionText(program: string): string {
  return `\n${program}  version: ${fullVersionString()}\n\n`;
}
