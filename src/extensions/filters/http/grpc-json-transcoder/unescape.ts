// Decodes %XX in paths and queries. Text has one character a byte.

/** Characters that stay encoded. */
export type Kept = 'none' | 'slash' | 'reserved';

/** RFC 6570 section 2.2, as bytes. */
const RESERVED = new Set(Array.from("!#$&'()*+,/:;=?@[]", (character) => character.charCodeAt(0)));
const SLASH = 47;
const ESCAPE = /%([0-9a-fA-F]{2})/g;

export function unescapeText(text: string, kept: Kept): string {
  if (!text.includes('%')) return text;
  return text.replace(ESCAPE, (escaped, digits: string) => {
    const code = Number.parseInt(digits, 16);
    const isKept = kept === 'slash' ? code === SLASH : kept === 'reserved' && RESERVED.has(code);
    return isKept ? escaped : String.fromCharCode(code);
  });
}
