// Converts only A to Z to lower case, as RFC 9110 and Envoy do when they ignore case.

export function lowerAscii(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}
