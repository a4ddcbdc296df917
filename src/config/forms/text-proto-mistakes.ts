// Finds all mistakes in a text protobuf that the library has refused. The library reports only the first one.

import { isUtf8 } from 'node:buffer';
import type protobufjs from 'protobufjs';
import { didYouMean } from '../../common/text/suggest.js';
import { oldFieldHint } from '../text/hints.js';
import type { PathPart } from '../text/path.js';
import { MAX_DEPTH, MAX_MISTAKES, type TextMistake } from '../text/source.js';

export interface TextProtoMistakes {
  readonly mistakes: readonly TextMistake[];
  /** Number of further mistakes that are not listed. */
  readonly further: number;
}

/**
 * Returns the mistakes in `text`; none if the library has another reason. Reading stops at the first syntax error. Messages
 * contain no values, which may be secrets.
 */
export function textProtoMistakes(type: protobufjs.Type, text: string): TextProtoMistakes {
  const search = new Search(text);
  search.all(type);
  return search;
}

interface Token {
  readonly kind: 'string' | 'word' | 'number' | 'sign' | 'end';
  readonly text: string;
  readonly offset: number;
}

/** White space, or a comment. */
const BLANK = /\s+|#[^\n]*/y;
/** A token other than a string. */
const TOKEN = /(?<number>\.?[0-9][\w.+]*(?:(?<=[eE])-[0-9]+)?)|(?<word>\w[\w.]*)|(?<sign>[[\]{}<>:,;/-])|(?<end>$)/y;
/** A part of a string, by its quote: whole strings of megabytes would exhaust the stack of an expression. */
const STRING_PART: Readonly<Record<string, RegExp>> = {
  '"': /[^"\\\n]+|\\[^\n]/y,
  "'": /[^'\\\n]+|\\[^\n]/y,
};

/** Thrown at a syntax error, after which the text cannot be interpreted. */
class SyntaxMistake extends Error {}

class Search {
  readonly mistakes: TextMistake[] = [];
  further = 0;
  readonly #fieldsOf = new Map<protobufjs.Type, ReadonlyMap<string, protobufjs.Field>>();
  #allTypes: ReadonlyMap<string, protobufjs.Type> | undefined;
  readonly #text: string;
  readonly #path: PathPart[] = [];
  #at = 0;
  #next: Token | undefined;

  constructor(text: string) {
    this.#text = text;
  }

  all(type: protobufjs.Type): void {
    try {
      this.#fields(type, undefined);
    } catch (error) {
      if (!(error instanceof SyntaxMistake)) throw error;
    }
  }

  /** Reads fields up to `closing`, or up to the end of the text. */
  #fields(type: protobufjs.Type, closing: string | undefined): void {
    // The library has reported this.
    if (this.#path.length > MAX_DEPTH) throw new SyntaxMistake();
    const counts = new Map<string, number>();
    for (;;) {
      const token = this.#take();
      if (token.kind === 'end' && closing === undefined) return;
      if (token.text === closing) return;
      if (token.text === ',' || token.text === ';') continue;
      if (token.text === '[') this.#extension(type);
      else if (token.kind === 'word') this.#field(type, token, counts);
      else this.#stop(token, closing === undefined ? 'expected a field' : `expected a field or '${closing}'`);
    }
  }

  #field(type: protobufjs.Type, token: Token, counts: Map<string, number>): void {
    const field = this.#known(type).get(token.text)?.resolve();
    const name = field?.name ?? token.text;
    this.#path.push(name);
    if (field === undefined) {
      if (!type.isReservedName(name)) {
        this.#note(token, () => unknownField(type, name));
      }
      this.#values((first) => this.#skip(first));
    } else if (field.repeated || field.map) {
      this.#values((first) => {
        const index = counts.get(name) ?? 0;
        counts.set(name, index + 1);
        if (!field.map) this.#path.push(index);
        this.#value(field, first);
        if (!field.map) this.#path.pop();
      });
    } else {
      this.#countSingle(field, token, counts);
      this.#values((first) => this.#value(field, first), false);
    }
    this.#path.pop();
  }

  /** Returns the fields by name, in both spellings. */
  #known(type: protobufjs.Type): ReadonlyMap<string, protobufjs.Field> {
    let known = this.#fieldsOf.get(type);
    if (known === undefined) {
      const names = type.fieldsArray.flatMap((field) =>
        [field.name, snakeCase(field.name)].map((name) => [name, field]),
      );
      this.#fieldsOf.set(type, (known = new Map(names as [string, protobufjs.Field][])));
    }
    return known;
  }

  #countSingle({ name, partOf }: protobufjs.Field, token: Token, counts: Map<string, number>): void {
    const other = partOf?.fieldsArray.find((member) => member.name !== name && counts.has(member.name));
    if (counts.has(name)) this.#note(token, `'${name}' is set twice`);
    else if (other !== undefined) {
      const members = partOf!.fieldsArray.map((member) => member.name).join(', ');
      this.#note(token, `only one of ${members} can be set, and '${other.name}' is set as well`);
    }
    counts.set(name, 1);
  }

  /** Reads after `[`: the message of an Any, or an extension, which the API does not have. */
  #extension(type: protobufjs.Type): void {
    const start = this.#peek();
    let name = '';
    for (let token = this.#take(); token.text !== ']'; token = this.#take()) {
      if (token.kind === 'end') this.#stop(token, "expected ']'");
      name += token.text;
    }
    const inner = this.#types(type.root).get(name.slice(name.lastIndexOf('/') + 1));
    if (inner !== undefined) return this.#values((first) => this.#message(inner, first), false);
    this.#note(start, `unknown type '${name.slice(0, 200)}'`);
    this.#values((first) => this.#skip(first));
  }

  /** Returns all messages by full name. The library's own lookup of an unknown name searches everything and caches the name. */
  #types(root: protobufjs.Root): ReadonlyMap<string, protobufjs.Type> {
    if (this.#allTypes === undefined) {
      const types = new Map<string, protobufjs.Type>();
      const add = (holder: protobufjs.NamespaceBase) => {
        for (const inner of holder.nestedArray) {
          if ('fieldsArray' in inner) types.set(inner.fullName.slice(1), inner as protobufjs.Type);
          if ('nestedArray' in inner) add(inner as protobufjs.NamespaceBase);
        }
      };
      add(root);
      this.#allTypes = types;
    }
    return this.#allTypes;
  }

  /** Reads what follows a name: a value, or a list of values. */
  #values(value: (first: Token) => void, mayBeList = true): void {
    if (this.#peek().text === ':') this.#take();
    const first = this.#take();
    if (first.text !== '[' || !mayBeList) return value(first);
    if (this.#peek().text === ']') return void this.#take();
    for (;;) {
      value(this.#take());
      const separator = this.#take();
      if (separator.text === ']') return;
      if (separator.text !== ',') this.#stop(separator, "expected ',' or ']'");
    }
  }

  #value(field: protobufjs.Field, first: Token): void {
    const { map, resolvedType } = field;
    if (map) return this.#entry(field as unknown as protobufjs.MapField, first);
    if (resolvedType !== null && 'fieldsArray' in resolvedType) return this.#message(resolvedType, first);
    this.#scalar(field.type, resolvedType, first);
  }

  #message(type: protobufjs.Type, first: Token): void {
    const closing = CLOSING.get(first.text);
    if (closing !== undefined) return this.#fields(type, closing);
    this.#note(first, `expected the fields of ${type.fullName.slice(1)} in braces`);
    this.#skip(first);
  }

  #entry({ keyType, resolvedType, type }: protobufjs.MapField, first: Token): void {
    const closing = CLOSING.get(first.text);
    if (closing === undefined) {
      this.#note(first, 'expected an entry with key and value in braces');
      return this.#skip(first);
    }
    for (let token = this.#take(); token.text !== closing; token = this.#take()) {
      if (token.text === ',' || token.text === ';') continue;
      if (token.kind !== 'word') this.#stop(token, `expected key, value or '${closing}'`);
      if (token.text !== 'key' && token.text !== 'value') this.#note(token, 'an entry has only key and value');
      this.#values((value) => {
        if (token.text === 'key') this.#scalar(keyType, null, value);
        else if (token.text !== 'value') this.#skip(value);
        else if (resolvedType !== null && 'fieldsArray' in resolvedType) this.#message(resolvedType, value);
        else this.#scalar(type, resolvedType, value);
      }, false);
    }
  }

  #scalar(type: string, known: protobufjs.Enum | protobufjs.Type | null, first: Token): void {
    const sign = first.text === '-';
    const token = sign ? this.#peek() : first;
    if (known !== null && 'values' in known) this.#enum(known, token, sign);
    else if (type === 'string' || type === 'bytes') {
      if (first.kind !== 'string') this.#note(first, 'expected a quoted string');
      else if (type === 'string') return this.#string(first);
    } else if (type === 'bool') {
      if (sign || !BOOLEAN.test(token.text)) this.#note(first, 'expected true or false');
    } else if (type === 'float' || type === 'double') {
      if (!FLOAT.test(token.text)) this.#note(first, 'expected a number');
    } else if (!INTEGER.test(token.text)) this.#note(first, 'expected a whole number');
    else if (sign && /^u|^fixed/.test(type)) this.#note(first, 'it cannot be negative');
    this.#skip(first);
  }

  /** Reads the parts of a string, which are one text. */
  #string(first: Token): void {
    let text = contentOf(first);
    while (this.#peek().kind === 'string') text += contentOf(this.#take());
    if (!isText(text)) this.#note(first, NOT_UTF8);
  }

  #enum({ values }: protobufjs.Enum, token: Token, sign: boolean): void {
    if (token.kind === 'number' ? INTEGER.test(token.text) : !sign && Object.hasOwn(values, token.text)) return;
    if (token.kind !== 'word') return this.#note(token, 'expected the name of a value');
    const names = Object.keys(values);
    this.#note(token, () => {
      const near = didYouMean(token.text, names);
      return `unknown value${near === '' ? `; it is one of ${names.join(', ')}` : near}`;
    });
  }

  /** Skips a value of any kind. */
  #skip(first: Token): void {
    const closing = CLOSING.get(first.text) ?? (first.text === '[' ? ']' : undefined);
    if (first.text === '-') this.#take();
    else if (closing !== undefined) this.#skipTo(closing);
    else if (first.kind === 'string') while (this.#peek().kind === 'string') this.#take();
    else if (first.kind === 'sign' || first.kind === 'end') this.#stop(first, 'expected a value');
  }

  #skipTo(closing: string): void {
    const open = [closing];
    while (open.length > 0) {
      const token = this.#take();
      if (token.kind === 'end') this.#stop(token, `expected '${open.at(-1)}'`);
      const inner = CLOSING.get(token.text) ?? (token.text === '[' ? ']' : undefined);
      if (inner !== undefined) open.push(inner);
      else if (token.text === open.at(-1)) open.pop();
    }
  }

  #peek(): Token {
    this.#next ??= this.#read();
    return this.#next;
  }

  #take(): Token {
    const token = this.#peek();
    this.#next = undefined;
    return token;
  }

  #read(): Token {
    const offset = this.#skipAll(BLANK, this.#at);
    const text = this.#text;
    const part = STRING_PART[text[offset] ?? ''];
    if (part !== undefined) {
      const end = this.#skipAll(part, offset + 1);
      if (text[end] === text[offset]) {
        this.#at = end + 1;
        return { kind: 'string', text: text.slice(offset, this.#at), offset };
      }
    }
    TOKEN.lastIndex = offset;
    const groups = TOKEN.exec(text)?.groups;
    const found = Object.entries(groups ?? {}).find(([, text]) => text !== undefined);
    if (found === undefined) {
      this.#stop({ kind: 'end', text: '', offset }, 'an unterminated string or an unexpected character');
    }
    this.#at = TOKEN.lastIndex;
    return { kind: found[0] as Token['kind'], text: found[1]!, offset };
  }

  /** Returns the offset after all that matches from there, one after the other. */
  #skipAll(pattern: RegExp, from: number): number {
    pattern.lastIndex = from;
    for (let end = from; ; end = pattern.lastIndex) if (!pattern.test(this.#text)) return end;
  }

  #note({ offset }: Token, message: string | (() => string)): void {
    if (this.mistakes.length === MAX_MISTAKES) this.further++;
    else {
      const text = typeof message === 'string' ? message : message();
      this.mistakes.push({ offset, message: text, path: [...this.#path] });
    }
  }

  #stop({ offset }: Token, message: string): never {
    if (this.mistakes.length === MAX_MISTAKES) this.further++;
    else this.mistakes.push({ offset, message });
    throw new SyntaxMistake();
  }
}

const NOT_UTF8 = "its escapes are not UTF-8; write characters as they are, or as '\\u00e9'";

function contentOf({ text }: Token): string {
  return text.slice(1, -1);
}

/** Returns whether the bytes of a string, with those of its octal and hexadecimal escapes, are UTF-8. */
function isText(written: string): boolean {
  if (!written.includes('\\')) return true;
  const bytes = Buffer.from(written);
  let length = 0;
  for (let at = 0; at < bytes.length; length++) {
    if (bytes[at] !== 0x5c) {
      bytes[length] = bytes[at++]!;
      continue;
    }
    const [whole, octal, hex] = BYTE_ESCAPE.exec(bytes.toString('latin1', at, at + 4)) ?? ['\\_'];
    bytes[length] = octal ? Number.parseInt(octal, 8) : hex ? Number.parseInt(hex, 16) : 0x5f;
    at += whole.length;
  }
  return isUtf8(bytes.subarray(0, length));
}

/** An escape that is a byte. All others are whole characters. */
const BYTE_ESCAPE = /^\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2}))/;

function unknownField(type: protobufjs.Type, name: string): string {
  const message = type.fullName.slice(1);
  const known = type.fieldsArray.map((each) => snakeCase(each.name));
  const old = oldFieldHint(message, name);
  const hint = old === undefined ? didYouMean(name, known) : `: ${old}`;
  return `unknown field '${name.slice(0, 100)}' of ${message}${hint}`;
}

/** The bundle has the fields of Google's own messages by their JSON names. */
function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

const CLOSING: ReadonlyMap<string, string> = new Map([
  ['{', '}'],
  ['<', '>'],
]);
const BOOLEAN = /^(?:true|false|True|False|t|f|0|1)$/;
const INTEGER = /^(?:0[xX][0-9A-Fa-f]+|[0-9]+)$/;
const FLOAT = /^(?:\.?[0-9][0-9.]*(?:[eE][+-]?[0-9]+)?[fF]?|inf|infinity|nan)$/i;
