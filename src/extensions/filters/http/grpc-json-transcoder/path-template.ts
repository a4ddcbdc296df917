// Path templates of google.api.http, such as `/v1/{name=shelves/*/books/*}:archive`:
//
//   Template = "/" Segments [ ":" LITERAL ]    Segments = Segment { "/" Segment }
//   Segment = "*" | "**" | LITERAL | "{" FieldPath [ "=" Segments ] "}"

export interface PathVariable {
  readonly fieldPath: readonly string[];
  /** The segments that it consists of: [start, end), where `end` counts from the end of the path if a `**` precedes it. */
  readonly start: number;
  readonly end: number;
  readonly isEndFromLast: boolean;
  /** It may have several segments. */
  readonly isMultiple: boolean;
}

export interface PathTemplate {
  readonly segments: readonly string[];
  /** Empty: none. */
  readonly verb: string;
  readonly variables: readonly PathVariable[];
}

const MAX_BYTES = 4096;
/** Any one segment, and any number of them. */
export const ONE = '*';
export const MANY = '**';

/** Returns undefined for a text that is not a template. */
export function parsePathTemplate(text: string): PathTemplate | undefined {
  if (text.length > MAX_BYTES) return undefined;
  const parser = new TemplateParser(text);
  return parser.template() && parser.isPossible() ? parser.result() : undefined;
}

interface OpenVariable {
  fieldPath: string[];
  start: number;
  end: number;
  hasMany: boolean;
}

class TemplateParser {
  readonly #text: string;
  #at = 0;
  readonly #segments: string[] = [];
  readonly #variables: OpenVariable[] = [];
  #verb = '';
  #open: OpenVariable | undefined;

  constructor(text: string) {
    this.#text = text;
  }

  template(): boolean {
    if (!this.#take('/') || !this.#parseSegments()) return false;
    if (this.#take(':')) {
      this.#verb = this.#literal();
      if (this.#verb === '') return false;
    }
    return this.#at === this.#text.length;
  }

  /** Only literals may follow a `**`, also no variables of them, because their place in a path is not known. */
  isPossible(): boolean {
    const many = this.#segments.indexOf(MANY);
    if (many < 0) return true;
    const isFixed = this.#segments.slice(many + 1).every((segment) => segment !== ONE && segment !== MANY);
    return isFixed && this.#variables.every(({ start }) => start <= many);
  }

  result(): PathTemplate {
    const count = this.#segments.length;
    const variables = this.#variables.map(({ fieldPath, start, end, hasMany }) => ({
      fieldPath,
      start,
      end: hasMany ? count - end : end,
      isEndFromLast: hasMany,
      isMultiple: hasMany || end - start > 1,
    }));
    return { segments: this.#segments, verb: this.#verb, variables };
  }

  #parseSegments(): boolean {
    do if (!this.#segment()) return false;
    while (this.#take('/'));
    return true;
  }

  #segment(): boolean {
    if (this.#take('*')) {
      const isMany = this.#take('*');
      this.#segments.push(isMany ? MANY : ONE);
      if (isMany && this.#open !== undefined) this.#open.hasMany = true;
      return true;
    }
    if (this.#take('{')) return this.#variable();
    const literal = this.#literal();
    this.#segments.push(literal);
    return literal !== '';
  }

  #variable(): boolean {
    // Variables are not nested.
    if (this.#open !== undefined) return false;
    const variable: OpenVariable = { fieldPath: [], start: this.#segments.length, end: 0, hasMany: false };
    this.#open = variable;
    do {
      const name = this.#until('.}=');
      if (name === '') return false;
      variable.fieldPath.push(name);
    } while (this.#take('.'));
    if (!this.#take('=')) this.#segments.push(ONE);
    else if (!this.#parseSegments()) return false;
    variable.end = this.#segments.length;
    this.#variables.push(variable);
    this.#open = undefined;
    return this.#take('}');
  }

  #literal(): string {
    return this.#until('/:}');
  }

  #until(ends: string): string {
    const start = this.#at;
    while (this.#at < this.#text.length && !ends.includes(this.#text[this.#at]!)) this.#at++;
    return this.#text.slice(start, this.#at);
  }

  #take(character: string): boolean {
    if (this.#text[this.#at] !== character) return false;
    this.#at++;
    return true;
  }
}
