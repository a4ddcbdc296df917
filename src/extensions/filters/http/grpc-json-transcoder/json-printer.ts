// Writes JSON text, in one line or with one space per level.

/** Characters that are escaped besides those of JSON: some break lines or change their direction, others end a script in HTML. */
const ESCAPED =
  /[\u0000-\u001f"\\<>\u007f-\u009f\u00ad\u0600-\u0603\u06dd\u070f\u17b4\u17b5\u200b-\u200f\u2028-\u202e\u2060-\u2064\u206a-\u206f\ufeff\ufff9-\ufffb\u{1d173}-\u{1d17a}\u{e0001}\u{e0020}-\u{e007f}]/gu;

const SHORT: { readonly [character: string]: string } = {
  '"': '\\"',
  '\\': '\\\\',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
};

export class JsonPrinter {
  text = '';
  readonly #hasSpace: boolean;
  #level = 0;
  /** Something has been written in the current object or array. */
  #isFilled = false;

  constructor(hasSpace: boolean) {
    this.#hasSpace = hasSpace;
  }

  /** Begins an object or an array with its bracket. */
  begin(bracket: '{' | '['): void {
    this.text += bracket;
    this.#level++;
    this.#isFilled = false;
  }

  end(bracket: '}' | ']'): void {
    this.#level--;
    if (this.#isFilled) this.#newLine();
    this.text += bracket;
    this.#isFilled = true;
  }

  /** Begins a member of an object. Its value follows. */
  key(name: string): void {
    this.element();
    this.text += this.#hasSpace ? `${quoted(name)}: ` : `${quoted(name)}:`;
  }

  /** Begins an element of an array. */
  element(): void {
    if (this.#isFilled) this.text += ',';
    this.#newLine();
    this.#isFilled = true;
  }

  /** Writes text that is JSON. */
  raw(text: string): void {
    this.text += text;
  }

  string(text: string): void {
    this.text += quoted(text);
  }

  /** Ends the document. */
  finish(): string {
    return this.#hasSpace ? `${this.text}\n` : this.text;
  }

  #newLine(): void {
    if (this.#hasSpace) this.text += `\n${' '.repeat(this.#level)}`;
  }
}

function quoted(text: string): string {
  return `"${text.replace(ESCAPED, escaped)}"`;
}

function escaped(character: string): string {
  const short = SHORT[character];
  if (short !== undefined) return short;
  let out = '';
  for (let index = 0; index < character.length; index++)
    out += `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`;
  return out;
}
