// Makes a text of the other process of a hot restart safe for the log.

import { escaped } from '../config/text/problem.js';

const MAX_CHARS = 500;

/** Returns it on one line and truncated: a peer may be of another version, or not be Baton at all. */
export function peerText(text: string): string {
  return escaped(text.slice(0, MAX_CHARS));
}
