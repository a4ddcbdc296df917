// headers_with_underscores_action: header names with '_' collide with others in backends that treat '-' and '_' alike (CGI).

import { OTHER_HEADER } from '../../common/text/header-names.js';
import type { HeaderBlock } from '../headers/header-block.js';

const UNDERSCORE = 95;

/** Returns whether a field's name has an underscore. */
export function hasUnderscoredNames(headers: HeaderBlock): boolean {
  return nextUnderscored(headers, 0) >= 0;
}

/** Removes fields whose name has an underscore. Returns how many. */
export function dropUnderscoredNames(headers: HeaderBlock): number {
  let dropped = 0;
  for (let index = nextUnderscored(headers, 0); index >= 0; index = nextUnderscored(headers, index + 1)) {
    headers.removeAt(index);
    dropped++;
  }
  return dropped;
}

/** Returns the index of the next field with an underscore in its name, or -1. Known names have none. */
function nextUnderscored(headers: HeaderBlock, from: number): number {
  if (!headers.mayHave(OTHER_HEADER)) return -1;
  const { bytes } = headers.memory;
  for (let index = from; index < headers.size; index++) {
    if (headers.id(index) !== OTHER_HEADER) continue;
    for (let at = headers.nameStart(index); at < headers.nameEnd(index); at++) {
      if (bytes[at] === UNDERSCORE) return index;
    }
  }
  return -1;
}
