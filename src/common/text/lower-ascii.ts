// Letters without case as RFC 9110 and Envoy compare them: A to Z alone.

export function lowerAscii(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}
