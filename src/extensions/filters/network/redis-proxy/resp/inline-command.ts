// Splits a line into the words of a command, with the quotes and escapes of redis-cli.

import { RespError } from './resp-scanner.js';

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', b: '\b', a: '\x07' };

/** Returns the words; none for an empty line. Throws a RespError for quotes that do not end, or that end inside of a word. */
export function splitLine(line: Buffer): Buffer[] {
  const text = line.toString('latin1');
  const words: Buffer[] = [];
  let at = 0;
  for (;;) {
    while (at < text.length && isSpace(text[at]!)) at++;
    if (at === text.length) return words;
    let word = '';
    while (at < text.length && !isSpace(text[at]!)) {
      const char = text[at]!;
      if (char !== '"' && char !== "'") {
        word += char;
        at++;
        continue;
      }
      const [content, after] = quoted(text, at + 1, char);
      if (after < text.length && !isSpace(text[after]!)) throw new RespError('a quote ends inside of a word');
      word += content;
      at = after;
    }
    words.push(Buffer.from(word, 'latin1'));
  }
}

/** Returns what is between the quotes, and the index after the closing one. */
function quoted(text: string, from: number, quote: string): [content: string, after: number] {
  let content = '';
  for (let at = from; at < text.length; at++) {
    const char = text[at]!;
    if (char === quote) return [content, at + 1];
    if (char !== '\\') {
      content += char;
      continue;
    }
    const next = text[at + 1] ?? '';
    if (quote === "'") {
      content += next === "'" ? next : char;
      if (next === "'") at++;
      continue;
    }
    const hex = /^x[0-9a-fA-F]{2}/.exec(text.slice(at + 1, at + 4));
    content += hex === null ? (ESCAPES[next] ?? next) : String.fromCharCode(Number.parseInt(hex[0].slice(1), 16));
    at += hex?.[0].length ?? 1;
  }
  throw new RespError('a quote does not end');
}

function isSpace(char: string): boolean {
  return char === ' ' || char === '\t' || char === '\n' || char === '\v' || char === '\f';
}
