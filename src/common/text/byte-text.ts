// Text in the form that HeaderBlock takes: one character per byte.

/** Returns the UTF-8 bytes of a text, one character per byte. Without this, characters above 255 would lose their upper bytes. */
export function byteText(text: string): string {
  for (let i = 0; i < text.length; i++) {
    if (text.charCodeAt(i) > 127) return Buffer.from(text, 'utf8').toString('latin1');
  }
  return text;
}
