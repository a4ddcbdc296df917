// A head that is built from texts, for messages that Baton's codecs have not read.

import type { OutgoingHttpHeaders } from 'node:http';
import { viewOf } from '../../common/copy-bytes.js';
import { type HeaderKey, headerKey } from '../../common/text/header-names.js';
import { HeadKind } from '../../common/text/joined-names.js';
import type { HeaderView, TextMemory } from './header-view.js';

export class TextHeaders implements HeaderView {
  readonly kind: HeadKind;
  readonly memory: TextMemory;
  readonly scheme: '' | 'http';
  readonly status: number;
  readonly methodStart = 0;
  readonly methodEnd: number;
  readonly pathStart: number;
  readonly pathEnd: number;
  readonly #names: string[] = [];
  readonly #ends: number[] = [];

  private constructor(method: string, path: string, scheme: '' | 'http', status: number, headers: OutgoingHttpHeaders) {
    this.scheme = scheme;
    this.status = status;
    this.kind = status === 0 ? HeadKind.Request : HeadKind.Response;
    const texts = [method, path];
    let end = (this.methodEnd = this.pathStart = method.length);
    this.pathEnd = end += path.length;
    for (const [name, value] of Object.entries(headers)) {
      if (value === undefined) continue;
      const key = headerKey(name);
      for (const text of valuesOf(key, value, this.kind)) {
        this.#names.push(key.name);
        texts.push(text);
        this.#ends.push((end += text.length));
      }
    }
    // Node's header texts have one character per byte.
    this.memory = new TextBytes(Buffer.from(texts.join(''), 'latin1'));
  }

  /** The head of a request over plain HTTP. An array contains the values of several fields with one name. */
  static ofRequest(method: string, path: string, headers: OutgoingHttpHeaders): TextHeaders {
    return new TextHeaders(method, path, 'http', 0, headers);
  }

  static ofResponse(status: number, headers: OutgoingHttpHeaders): TextHeaders {
    return new TextHeaders('', '', '', status, headers);
  }

  find(key: HeaderKey, from = 0): number {
    return this.#names.indexOf(key.name, from);
  }

  get size(): number {
    return this.#names.length;
  }

  isRemoved(): boolean {
    return false;
  }

  name(index: number): string {
    return this.#names[index]!;
  }

  get fieldBytes(): number {
    const values = (this.#ends.at(-1) ?? this.pathEnd) - this.pathEnd;
    return this.#names.reduce((sum, name) => sum + name.length, values);
  }

  findNext(key: HeaderKey, index: number): number {
    return this.find(key, index + 1);
  }

  valueStart(index: number): number {
    return index === 0 ? this.pathEnd : this.#ends[index - 1]!;
  }

  valueEnd(index: number): number {
    return this.#ends[index]!;
  }

  get(key: HeaderKey): string | undefined {
    const index = this.find(key);
    return index < 0 ? undefined : this.memory.text(this.valueStart(index), this.valueEnd(index));
  }

  /** The constructor has already joined fields that form one value. */
  findValue(key: HeaderKey): number {
    return this.find(key);
  }

  withdrawValue(): void {}
}

function valuesOf(key: HeaderKey, value: number | string | readonly string[], kind: HeadKind): readonly string[] {
  if (typeof value !== 'object') return [String(value)];
  return (key.joinedIn & kind) === 0 ? value : [value.filter((text) => text !== '').join(',')];
}

/** The bytes of one head, followed by scratch memory. */
class TextBytes implements TextMemory {
  bytes!: Buffer;
  view!: DataView;
  #end: number;

  constructor(bytes: Buffer) {
    this.#use(bytes);
    this.#end = bytes.length;
  }

  text(start: number, end: number): string {
    return this.bytes.toString('latin1', start, end);
  }

  scratch(length: number): number {
    const start = this.#end;
    this.#end += length;
    if (this.#end > this.bytes.length) this.#use(Buffer.concat([this.bytes, Buffer.alloc(length)]));
    return start;
  }

  withdrawScratch(offset: number): void {
    this.#end = offset;
  }

  write(offset: number, text: string): void {
    this.bytes.write(text, offset, 'latin1');
  }

  #use(bytes: Buffer): void {
    this.bytes = bytes;
    this.view = viewOf(bytes);
  }
}

/** An empty head, for streams without a readable request. */
export const NO_HEAD: HeaderView = TextHeaders.ofResponse(0, {});
