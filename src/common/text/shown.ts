// Texts that users and peers have written, as the log and messages show them: they end no line, and tell a terminal nothing.

/** What would end a line, change its direction, or tell a terminal something. */
export const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;

/** The same without what ends and indents the lines of a message. */
const UNPRINTABLE_WITHIN_LINES = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;

/** As much of a name is shown. */
const MAX_NAME = 256;

/** On one line, with escapes for what is not printable. */
export function onOneLine(text: string): string {
  return text.replace(UNPRINTABLE, escapeOf);
}

/** The same lines, with escapes for what else is not printable. */
export function printableLines(text: string): string {
  return text.replace(UNPRINTABLE_WITHIN_LINES, escapeOf);
}

/** A name that a configuration or a management server gives: of what is too long the beginning, and how much is left out. */
export function shownName(name: string): string {
  const cut = name.length - MAX_NAME;
  return cut > 0 ? `${onOneLine(name.slice(0, MAX_NAME))}… (${cut} more characters)` : onOneLine(name);
}

function escapeOf(character: string): string {
  return character === '\n' ? '\\n' : `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
