// Errors of modules: where in the user's files they come from.

import { fileURLToPath } from 'node:url';

/** A frame of a stack: `at onRequest (file:///home/ann/gate.ts:3:9)`. */
const FRAME = /\bfile:\/\/[^\s()]+\.(?:m?ts|m?js):\d+:\d+/g;

/**
 * Returns what a module has thrown as text, with the place of its first frame in `files` (URLs): `/home/ann/gate.ts:3:9: TypeError: …`.
 * Never throws.
 */
export function scriptErrorText(thrown: unknown, files: (url: string) => boolean): string {
  try {
    const text = thrown instanceof Error ? textOf(thrown) : `it threw ${String(thrown)}, which is no Error`;
    const place = thrown instanceof Error ? scriptPlace(thrown, files) : undefined;
    return place === undefined ? text : `${place}: ${text}`;
  } catch {
    return 'it threw something that cannot be shown';
  }
}

/** Errors of Baton's own checks have no name that helps. */
function textOf({ message, name }: Error): string {
  return name === 'Error' || name === 'BatonError' || /^\/.*:\d+:\d+: /.test(message) ? message : `${name}: ${message}`;
}

/** Returns the first frame in `files`, as `path:line:column`; undefined: there is none. */
export function scriptPlace({ stack }: Error, files: (url: string) => boolean): string | undefined {
  for (const [frame] of String(stack).matchAll(FRAME)) {
    const [, url, line, column] = /^(.*):(\d+):(\d+)$/.exec(frame)!;
    if (files(url!)) return `${fileURLToPath(url!)}:${line}:${column}`;
  }
  return undefined;
}
