// Makes texts of users and peers safe for logs and messages: no line breaks, no terminal control sequences.

/** Characters that end a line, change the text direction, or control a terminal. */
export const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;

/** The same, except tabs and line feeds. */
const UNPRINTABLE_WITHIN_LINES = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;

/** Indentation of the further lines of a text. */
const INDENT = '  ';

/** Maximum length of a shown name. */
const MAX_NAME = 256;

/** Returns a text on one line, with escapes for unprintable characters. */
export function onOneLine(text: string): string {
  return text.replace(UNPRINTABLE, escapeOf);
}

/** Returns a text as one word of a line, with `_` for white space: a field of an access log that ends at a space. */
export function oneWord(text: string): string {
  return onOneLine(text.replace(/\s/g, '_'));
}

/**
 * Returns a text with its line breaks, and escapes for other unprintable characters. All lines but the first are indented: what a
 * peer or a file has named cannot pass for a line of the log's own.
 */
export function indentedLines(text: string): string {
  return text.replace(UNPRINTABLE_WITHIN_LINES, escapeOf).replaceAll('\n', `\n${INDENT}`);
}

/** Returns a text on one line, with `\n` for line breaks, and escapes for other unprintable characters except tabs. */
export function joinedLines(text: string): string {
  return text.replace(UNPRINTABLE_WITHIN_LINES, escapeOf).replaceAll('\n', '\\n');
}

/** Returns a name from a configuration or a management server as one line. Cuts a long name and appends how much was cut. */
export function shownName(name: string): string {
  const cut = name.length - MAX_NAME;
  return cut > 0 ? `${onOneLine(name.slice(0, MAX_NAME))}… (${cut} more characters)` : onOneLine(name);
}

function escapeOf(character: string): string {
  return character === '\n' ? '\\n' : `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
