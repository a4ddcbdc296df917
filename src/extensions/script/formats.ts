// Formats of access logs that modules use.

import { compileFormat, type Format } from '../sdk.js';

/** Compiled formats by text: a module may make them from what clients send. */
const MAX_FORMATS = 256;
const formats = new Map<string, Format>();

/** Throws a FormatError for an invalid operator. */
export function formatOf(text: string): Format {
  let format = formats.get(text);
  if (format === undefined) {
    format = compileFormat(text);
    if (formats.size < MAX_FORMATS) formats.set(text, format);
  }
  return format;
}
