// The text of refused resources, for logs and answers to servers.

import { shownName } from '../common/text/shown.js';
import type { RefusedResource } from './resource.js';
import type { Rejection } from './subscription.js';

const MAX_TEXT_CHARS = 4096;

/** Returns the errors, one per line, truncated to a length that suits logs and servers. */
export function rejectionText(rejections: readonly (Rejection | RefusedResource)[]): string {
  let text = '';
  for (const [index, { name, details }] of rejections.entries()) {
    text += `${index === 0 ? '' : '\n'}${name === '' ? details : `${shownName(name)}: ${details}`}`;
    if (text.length > MAX_TEXT_CHARS) return `${text.slice(0, MAX_TEXT_CHARS)}...(truncated)`;
  }
  return text;
}
