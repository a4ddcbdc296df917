// Generates the documents of the command line from the option table: the man page, docs/command-line.md and the shell
// completions.
//
//   npm run build && node dist/scripts/document-options.js

import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { argv } from 'node:process';
import { pathToFileURL } from 'node:url';
import { packagePath } from '../src/common/package/package-root.js';
import { bashCompletion } from './options/bash.js';
import { fishCompletion } from './options/fish.js';
import { manPage } from './options/man-page.js';
import { commandLineDocument } from './options/markdown.js';
import { zshCompletion } from './options/zsh.js';

/** Returns paths relative to the package, and the text of each file. */
export function optionDocuments(): readonly (readonly [path: string, text: string])[] {
  return [
    ['docs/baton.1', manPage()],
    ['docs/command-line.md', commandLineDocument()],
    ['completions/baton.bash', bashCompletion()],
    ['completions/_baton', zshCompletion()],
    ['completions/baton.fish', fishCompletion()],
  ];
}

if (import.meta.url === pathToFileURL(argv[1] ?? '').href) {
  for (const [path, text] of optionDocuments()) {
    mkdirSync(dirname(packagePath(path)), { recursive: true });
    writeFileSync(packagePath(path), text);
  }
}
