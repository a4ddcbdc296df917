// Text as HeaderBlock takes it: one character a byte.

/** The UTF-8 of a text, which would otherwise lose the upper bytes of its characters. */
export function byteText(text: string): string {
  for (let i = 0; i < text.length; i++) {
    if (text.charCodeAt(i) > 127) return Buffer.from(text, 'utf8').toString('latin1');
  }
  return text;
}
