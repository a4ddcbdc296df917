// What the other process of a hot restart says of itself, as the log can have it.

import { escaped } from '../config/text/problem.js';

const MOST = 500;

/** On one line, and not too long: a peer may be of another version, or not be Baton at all. */
export function peerText(text: string): string {
  return escaped(text.slice(0, MOST));
}
