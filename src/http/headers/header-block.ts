// The head of a message as byte ranges: start line and header fields stay where they were received until somebody asks.
//
// A field is one line "name: value CRLF" somewhere in the thread's memory. Fields that are added are written as such lines too,
// into scratch, so that a whole head is a list of ranges, and neighbouring unchanged lines are one range. Ranges in the
// receive window and in scratch end with the turn: retain() moves the block to the arena when it must live longer.

import {
  ConnectionHeader,
  equalsFolded,
  type HeaderKey,
  type HeaderSet,
  isFieldName,
  OTHER_HEADER,
} from '../../common/text/header-names.js';
import { type Memory, NO_BLOCK, NoRoomError } from '../../io/memory.js';
import { StepPool } from '../step-pool.js';

/** Words of a field record. */
export const FIELD_WORDS = 6;
export const enum Field {
  /** Number of the name; REMOVED when the field is gone. */
  Id = 0,
  NameStart = 1,
  NameEnd = 2,
  ValueStart = 3,
  ValueEnd = 4,
  /** Behind the line's CRLF. */
  LineEnd = 5,
}
const REMOVED = -1;

/** How the end of a body is told (RFC 9112 section 6.3). */
export const enum BodyKind {
  None = 0,
  Length = 1,
  Chunked = 2,
  UntilClose = 3,
}

export const enum Method {
  Other = 0,
  Get = 1,
  Head = 2,
  Post = 3,
  Put = 4,
  Delete = 5,
  Connect = 6,
  Options = 7,
  Trace = 8,
  Patch = 9,
}

/** Of all but Method.Other, in the order of their numbers. */
export const METHOD_NAMES = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH'];

export class HeaderBlock {
  readonly memory: Memory;

  /** Request: the method, and where it stands. */
  method: Method = Method.Other;
  methodStart = 0;
  methodEnd = 0;
  /** Request: path with query, in origin form ("/a?b"), "*" or the authority of a CONNECT. */
  pathStart = 0;
  pathEnd = 0;
  /** Request: that of its URL, or what x-forwarded-proto had said at the edge; '' without either. See requestScheme(). */
  scheme: '' | 'http' | 'https' = '';
  /** Response: status code; 0 in a request or trailers. */
  status = 0;
  /** Minor version of HTTP/1 as received: 0 or 1. */
  minorVersion = 1;
  /** The start line as received, ready to be sent on: [startLineStart, startLineEnd) with CRLF; empty when it must be written anew. */
  startLineStart = 0;
  startLineEnd = 0;

  bodyKind: BodyKind = BodyKind.None;
  /** With BodyKind.Length. */
  contentLength = 0;
  /** The connection does not go on after this message (Connection: close, or HTTP/1.0 without keep-alive). */
  close = false;
  /** A request to switch protocols: Connection: upgrade with an Upgrade field; in a response 101. */
  upgrade = false;
  /** Expect: 100-continue. */
  expectContinue = false;
  /** The Connection field names more than close, keep-alive and upgrade: fields that are for the next hop only. */
  nominates = false;
  /** Behind the empty line, when it follows the last received field directly; 0 when it does not. */
  headEnd = 0;

  #fields = new Int32Array(24 * FIELD_WORDS);
  #count = 0;
  #block = NO_BLOCK;
  #retained = false;
  #isAbandoned = false;
  /** Who still needs the block: its codec, and everybody who called hold(). */
  #users = 1;
  readonly #pool: HeaderBlockPool | undefined;
  /** Next unused byte of the arena block. */
  #arenaNext = 0;
  /** Which known names occur or did occur: a bit each, so that most look-ups need no scan. */
  #presentLow = 0;
  #presentHigh = 0;

  constructor(memory: Memory, pool?: HeaderBlockPool) {
    this.memory = memory;
    this.#pool = pool;
  }

  /** Number of field records, removed ones included: indexes run from 0 to size - 1. */
  get size(): number {
    return this.#count;
  }

  /** Forgets everything and releases what was retained. */
  clear(): void {
    if (this.#block !== NO_BLOCK) {
      this.memory.release(this.#block);
      this.#block = NO_BLOCK;
    }
    this.#retained = false;
    this.#arenaNext = 0;
    this.#count = 0;
    this.#presentLow = 0;
    this.#presentHigh = 0;
    this.method = Method.Other;
    this.status = 0;
    this.minorVersion = 1;
    this.methodStart = this.methodEnd = 0;
    this.pathStart = this.pathEnd = 0;
    this.scheme = '';
    this.startLineStart = this.startLineEnd = 0;
    this.bodyKind = BodyKind.None;
    this.contentLength = 0;
    this.close = this.upgrade = this.expectContinue = this.nominates = false;
    this.headEnd = 0;
  }

  /**
   * Keeps the block beyond the exchange that it came with: retains it, and its codec leaves it alone until drop().
   * Returns false when the arena has no room.
   */
  hold(): boolean {
    if (!this.retain()) return false;
    this.#users++;
    return true;
  }

  /**
   * Gives the block up. When the last user has done so, its arena block is released and the block used again for another
   * message; its callers can read what it tells until they return.
   */
  drop(): void {
    if (--this.#users > 0) return;
    this.#users = 1;
    if (this.#block !== NO_BLOCK) {
      this.memory.release(this.#block);
      this.#block = NO_BLOCK;
    }
    this.#retained = false;
    if (this.#isAbandoned) this.#count = this.#presentLow = this.#presentHigh = 0;
    else this.#pool?.put(this);
  }

  /** drop() where somebody may still have the block and use it when he likes: it serves no other message, and tells nothing. */
  abandon(): void {
    this.#isAbandoned = true;
    this.drop();
  }

  /** Appends the field whose line is [nameStart, lineEnd). Used by codecs and for lines written in advance. */
  addField(
    id: number,
    nameStart: number,
    nameEnd: number,
    valueStart: number,
    valueEnd: number,
    lineEnd: number,
  ): void {
    const at = this.#count * FIELD_WORDS;
    if (at === this.#fields.length) this.#grow();
    const fields = this.#fields;
    fields[at] = id;
    fields[at + Field.NameStart] = nameStart;
    fields[at + Field.NameEnd] = nameEnd;
    fields[at + Field.ValueStart] = valueStart;
    fields[at + Field.ValueEnd] = valueEnd;
    fields[at + Field.LineEnd] = lineEnd;
    this.#count++;
    if (id < 32) this.#presentLow |= 1 << id;
    else this.#presentHigh |= 1 << (id - 32);
  }

  /** Appends the fields of `count` records, the first of which begins at records[from]; their offsets count from `base`. */
  addFields(records: Int32Array, from: number, count: number, base: number): void {
    const size = this.#count;
    while ((size + count) * FIELD_WORDS > this.#fields.length) this.#grow();
    const fields = this.#fields;
    const end = (size + count) * FIELD_WORDS;
    for (let at = size * FIELD_WORDS; at < end; at += FIELD_WORDS, from += FIELD_WORDS) {
      const id = records[from]!;
      fields[at] = id;
      fields[at + Field.NameStart] = records[from + Field.NameStart]! + base;
      fields[at + Field.NameEnd] = records[from + Field.NameEnd]! + base;
      fields[at + Field.ValueStart] = records[from + Field.ValueStart]! + base;
      fields[at + Field.ValueEnd] = records[from + Field.ValueEnd]! + base;
      fields[at + Field.LineEnd] = records[from + Field.LineEnd]! + base;
      if (id < 32) this.#presentLow |= 1 << id;
      else this.#presentHigh |= 1 << (id - 32);
    }
    this.#count = size + count;
  }

  /** Writes the records of the first `count` fields to records[from] and behind, with offsets that count from `base`. */
  copyFields(records: Int32Array, from: number, count: number, base: number): void {
    const fields = this.#fields;
    const end = count * FIELD_WORDS;
    for (let at = 0; at < end; at++) records[from + at] = fields[at]! - (at % FIELD_WORDS === Field.Id ? 0 : base);
  }

  id(index: number): number {
    return this.#fields[index * FIELD_WORDS]!;
  }
  isRemoved(index: number): boolean {
    return this.#fields[index * FIELD_WORDS]! === REMOVED;
  }
  nameStart(index: number): number {
    return this.#fields[index * FIELD_WORDS + Field.NameStart]!;
  }
  nameEnd(index: number): number {
    return this.#fields[index * FIELD_WORDS + Field.NameEnd]!;
  }
  valueStart(index: number): number {
    return this.#fields[index * FIELD_WORDS + Field.ValueStart]!;
  }
  valueEnd(index: number): number {
    return this.#fields[index * FIELD_WORDS + Field.ValueEnd]!;
  }
  lineEnd(index: number): number {
    return this.#fields[index * FIELD_WORDS + Field.LineEnd]!;
  }

  /** Whether a known name may occur: false is certain. */
  mayHave(id: number): boolean {
    return ((id < 32 ? this.#presentLow >>> id : this.#presentHigh >>> (id - 32)) & 1) === 1;
  }

  /** Whether one of the known names below 32 whose bits are set in `mask` may occur: false is certain. */
  mayHaveAny(mask: number): boolean {
    return (this.#presentLow & mask) !== 0;
  }

  /** Whether one of these names may occur: false is certain. */
  mayHaveOneOf(names: HeaderSet): boolean {
    return ((this.#presentLow & names.low) | (this.#presentHigh & names.high)) !== 0;
  }

  /** Index of the first field at or behind `from` with the known name `id`, or -1. */
  findId(id: number, from = 0): number {
    if (!this.mayHave(id)) return -1;
    const fields = this.#fields;
    const end = this.#count * FIELD_WORDS;
    for (let at = from * FIELD_WORDS; at < end; at += FIELD_WORDS) if (fields[at] === id) return at / FIELD_WORDS;
    return -1;
  }

  /** Index of the first field at or behind `from` with this name, or -1. */
  find(key: HeaderKey, from = 0): number {
    if (key.id !== OTHER_HEADER) return this.findId(key.id, from);
    if (!this.mayHave(OTHER_HEADER)) return -1;
    const fields = this.#fields;
    const bytes = this.memory.bytes;
    for (let index = from; index < this.#count; index++) {
      const at = index * FIELD_WORDS;
      if (
        fields[at] === OTHER_HEADER &&
        equalsFolded(bytes, fields[at + Field.NameStart]!, fields[at + Field.NameEnd]!, key.bytes)
      )
        return index;
    }
    return -1;
  }

  /** The field's name in lower case. */
  name(index: number): string {
    return this.memory.text(this.nameStart(index), this.nameEnd(index)).toLowerCase();
  }
  value(index: number): string {
    return this.memory.text(this.valueStart(index), this.valueEnd(index));
  }
  /** The first value of this name, or undefined. */
  get(key: HeaderKey): string | undefined {
    const index = this.find(key);
    return index < 0 ? undefined : this.value(index);
  }

  methodText(): string {
    return this.memory.text(this.methodStart, this.methodEnd);
  }
  pathText(): string {
    return this.memory.text(this.pathStart, this.pathEnd);
  }

  /**
   * Adds a field behind the others. The name must be valid, and in the value one character is one byte: byteText() makes that of
   * other text. Throws when a character is no byte, or would end the line (CR, LF, NUL); and for a second content-length, of which one
   * peer obeys the first and another the last.
   */
  add(key: HeaderKey, value: string): void {
    // JSON.parse() and the like give values that the compiler takes for any type.
    if (typeof value !== 'string') throw unsuitable(key.name, value);
    if (key.id === ConnectionHeader.ContentLength && this.findId(key.id) >= 0)
      throw new TypeError('a message has one content-length: set() replaces it');
    const name = key.bytes;
    const start = this.room(name.length + value.length + 4);
    const bytes = this.memory.bytes;
    let at = start;
    for (let i = 0; i < name.length; i++) bytes[at++] = name[i]!;
    bytes[at++] = 58;
    bytes[at++] = 32;
    const valueStart = at;
    for (let i = 0; i < value.length; i++) {
      const code = value.charCodeAt(i);
      if (!isInLine(code)) throw unsuitable(key.name, value);
      bytes[at++] = code;
    }
    bytes[at] = 13;
    bytes[at + 1] = 10;
    this.addField(key.id, start, start + name.length, valueStart, at, at + 2);
  }

  /** Replaces all fields of this name by one. */
  set(key: HeaderKey, value: string): void {
    this.remove(key);
    this.add(key, value);
  }

  removeAt(index: number): void {
    this.#fields[index * FIELD_WORDS] = REMOVED;
  }
  removeId(id: number): void {
    for (let index = this.findId(id); index >= 0; index = this.findId(id, index + 1)) this.removeAt(index);
  }
  /** Removes all fields of this name; tells whether there was one. */
  remove(key: HeaderKey): boolean {
    let found = false;
    for (let index = this.find(key); index >= 0; index = this.find(key, index + 1)) {
      this.removeAt(index);
      found = true;
    }
    return found;
  }

  /**
   * Replaces the path, one character a byte as in add(); the start line is written anew. Throws when it is neither "*" nor begins with a
   * slash, but for the authority of a CONNECT, or has a character that no path can have: a space, a control character, '#', one that is
   * no byte.
   */
  setPath(path: string): void {
    const isTarget =
      typeof path === 'string' && (path.startsWith('/') || path === '*' || this.method === Method.Connect);
    if (!isTarget) throw unsuitable('a path', path);
    this.setTarget(path);
  }

  /** setPath() of what may begin with anything: a regex_rewrite can leave no slash, and as in Envoy the host is to judge that. */
  setTarget(path: string): void {
    if (path === '') throw unsuitable('a path', path);
    for (let i = 0; i < path.length; i++) if (!isInPath(path.charCodeAt(i))) throw unsuitable('a path', path);
    const start = this.writeText(path);
    this.pathStart = start;
    this.pathEnd = start + path.length;
    this.startLineEnd = this.startLineStart;
  }

  /**
   * Replaces the method; the start line is written anew. Throws when `text` is no token, or is not what `method` says: where a response
   * ends depends on both ends taking the request for the same.
   */
  setMethod(method: Method, text: string): void {
    if (!isFieldName(text)) throw unsuitable('a method', text);
    if (METHOD_NAMES.indexOf(text) !== method - 1)
      throw new TypeError(`${text} is another method than the Method that is given with it`);
    this.method = method;
    this.methodStart = this.writeText(text);
    this.methodEnd = this.methodStart + text.length;
    this.startLineEnd = this.startLineStart;
  }

  /** Of a response that ends its request: throws when it is no whole number from 200 to 599. */
  setStatus(status: number): void {
    if (!(Number.isInteger(status) && status >= 200 && status <= 599))
      throw new RangeError(`no request ends with the status ${status}`);
    this.status = status;
    this.startLineEnd = this.startLineStart;
  }

  /** Latin-1 text into bytes that live as long as the block's other bytes; returns their start. */
  writeText(text: string): number {
    const start = this.room(text.length);
    const bytes = this.memory.bytes;
    for (let i = 0; i < text.length; i++) bytes[start + i] = text.charCodeAt(i);
    return start;
  }

  /** Gives the block an arena block that all its ranges point into; what is added goes to `next` in it. */
  adopt(block: number, next: number): void {
    this.#block = block;
    this.#retained = true;
    this.#arenaNext = next;
  }

  /**
   * Moves all ranges to the arena, so that the block outlives the turn. Later additions go to the arena as well.
   * Returns false when the arena has no room; the block is then unchanged.
   */
  retain(): boolean {
    return this.#retained || this.#moveToArena(0);
  }

  /**
   * Room for `length` bytes which live as long as the block's other bytes: scratch, or the arena once the block is retained.
   * The block's ranges may have moved afterwards. Throws a NoRoomError when there is none.
   */
  room(length: number): number {
    if (!this.#retained) return this.memory.scratch(length);
    if (!this.#moveToArena(length)) throw new NoRoomError('no room in the arena for a header that is added');
    return this.#arenaNext - length;
  }

  /** Copies every range into a fresh arena block with `spare` bytes behind them, and releases the former block. */
  #moveToArena(spare: number): boolean {
    if (this.#block !== NO_BLOCK) {
      const end = this.#block + this.memory.blockSize(this.#block);
      if (this.#arenaNext + spare <= end) {
        this.#arenaNext += spare;
        return true;
      }
    }
    const block = this.memory.retain(this.#byteLength() + spare);
    if (block === NO_BLOCK) return false;
    const next = this.#moveLines(block);
    if (this.#block !== NO_BLOCK) this.memory.release(this.#block);
    this.#block = block;
    this.#retained = true;
    this.#arenaNext = next + spare;
    this.headEnd = 0;
    return true;
  }

  #byteLength(): number {
    const fields = this.#fields;
    const end = this.#count * FIELD_WORDS;
    let sum =
      this.methodEnd - this.methodStart + (this.pathEnd - this.pathStart) + (this.startLineEnd - this.startLineStart);
    for (let at = 0; at < end; at += FIELD_WORDS) {
      if (fields[at] !== REMOVED) sum += fields[at + Field.LineEnd]! - fields[at + Field.NameStart]!;
    }
    return sum;
  }

  /** Moves start line and fields to `to`: what stands one right behind another in one go, as most does. Returns the end. */
  #moveLines(to: number): number {
    const { memory } = this;
    const fields = this.#fields;
    const count = this.#count * FIELD_WORDS;
    let start = this.startLineStart;
    let end = this.startLineEnd;
    if (end > start) this.#shiftStartLine(to - start);
    else to = this.#moveTarget(to);
    for (let at = 0; at < count; at += FIELD_WORDS) {
      if (fields[at] === REMOVED) continue;
      const line = fields[at + Field.NameStart]!;
      if (line !== end) {
        memory.copy(to, start, end);
        to += end - start;
        start = line;
      }
      end = fields[at + Field.LineEnd]!;
      const shift = to - start;
      for (let word = Field.NameStart; word <= Field.LineEnd; word++) fields[at + word] = fields[at + word]! + shift;
    }
    memory.copy(to, start, end);
    return to + end - start;
  }

  #shiftStartLine(shift: number): void {
    this.startLineStart += shift;
    this.startLineEnd += shift;
    this.methodStart += shift;
    this.methodEnd += shift;
    this.pathStart += shift;
    this.pathEnd += shift;
  }

  /** Moves what a start line is to be made of. Returns the end. */
  #moveTarget(to: number): number {
    const path = to + this.methodEnd - this.methodStart;
    const end = path + this.pathEnd - this.pathStart;
    this.memory.copy(to, this.methodStart, this.methodEnd);
    this.memory.copy(path, this.pathStart, this.pathEnd);
    this.startLineStart = this.startLineEnd = this.methodStart = to;
    this.methodEnd = this.pathStart = path;
    this.pathEnd = end;
    return end;
  }

  #grow(): void {
    const larger = new Int32Array(this.#fields.length * 2);
    larger.set(this.#fields);
    this.#fields = larger;
  }
}

/** Whether a character is a byte that may stand in a line. */
function isInLine(code: number): boolean {
  return code < 256 && code !== 13 && code !== 10 && code !== 0;
}

/** Whether a character is a byte that a path may have. */
function isInPath(code: number): boolean {
  return code > 32 && code < 256 && code !== 127 && code !== 35;
}

function unsuitable(what: string, value: unknown): TypeError {
  return new TypeError(`${what} cannot have such a value: ${(JSON.stringify(value) ?? String(value)).slice(0, 82)}`);
}

/** A thread's header blocks, used again and again. */
export class HeaderBlockPool {
  readonly #blocks: StepPool<HeaderBlock>;

  constructor(memory: Memory) {
    this.#blocks = new StepPool(memory, () => new HeaderBlock(memory, this));
  }

  /** An empty block; drop() gives it back. */
  take(): HeaderBlock {
    const block = this.#blocks.take();
    block.clear();
    return block;
  }

  /** For HeaderBlock.drop(). */
  put(block: HeaderBlock): void {
    this.#blocks.giveBack(block);
  }
}
