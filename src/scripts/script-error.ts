// Errors of modules: where in the user's files they come from.

import { fileURLToPath } from 'node:url';

/** A frame of a stack: `at onRequest (file:///home/ann/gate.ts:3:9)`. */
const FRAME = /\bfile:\/\/[^\s()]+\.(?:m?ts|m?js):\d+:\d+/g;

/**
 * Returns what a module has thrown as text, with the place of its first frame in `files` (URLs): `/home/ann/gate.ts:3:9: TypeError: …`.
 * `otherwise`: returns the place if there is no such frame. Never throws.
 */
export function scriptErrorText(
  thrown: unknown,
  files: (url: string) => boolean,
  otherwise: () => string | undefined = () => undefined,
): string {
  try {
    const text = thrown instanceof Error ? textOf(thrown) : `it threw ${String(thrown)}, which is no Error`;
    const frame = thrown instanceof Error ? scriptPlace(thrown, files) : undefined;
    const place = frame ?? (STARTS_WITH_PLACE.test(text) ? undefined : otherwise());
    return place === undefined ? text : `${place}: ${text}`;
  } catch {
    return 'it threw something that cannot be shown';
  }
}

const STARTS_WITH_PLACE = /^\/.*:\d+:\d+: /;

/** Errors of Baton's own checks have no name that helps. */
function textOf({ message, name }: Error): string {
  return name === 'Error' || name === 'BatonError' || STARTS_WITH_PLACE.test(message) ? message : `${name}: ${message}`;
}

/** Returns the first frame in `files`, as `path:line:column`; undefined: there is none. */
export function scriptPlace({ stack }: Error, files: (url: string) => boolean): string | undefined {
  for (const [frame] of String(stack).matchAll(FRAME)) {
    const [, url, line, column] = /^(.*):(\d+):(\d+)$/.exec(frame)!;
    if (files(url!)) return `${fileURLToPath(url!)}:${line}:${column}`;
  }
  return undefined;
}

/**
 * Returns where a function is in sources (texts by URL), as `path:line:column`; undefined: nowhere, or its text is that of several.
 * Types are replaced by spaces, so that a function's text is a part of its file.
 */
export function functionPlace(
  hook: unknown,
  sources: Iterable<readonly [url: string, text: string]>,
): string | undefined {
  if (typeof hook !== 'function') return undefined;
  const text = Function.prototype.toString.call(hook);
  for (const [url, source] of sources) {
    const at = source.indexOf(text);
    if (at < 0) continue;
    if (source.indexOf(text, at + 1) >= 0) return undefined;
    const before = source.slice(0, at);
    const line = before.split('\n').length;
    return `${fileURLToPath(url)}:${line}:${at - before.lastIndexOf('\n')}`;
  }
  return undefined;
}
