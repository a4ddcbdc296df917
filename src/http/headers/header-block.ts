// The head of a message as byte ranges: start line and header fields stay where they were received, and become strings only on request.
//
// A field is one line "name: value CRLF" in the thread's memory. Added fields are written as such lines into scratch, so a whole head is a
// list of ranges, and adjacent unchanged lines are one range. Ranges in the receive window and in scratch are valid until the turn ends;
// retain() moves the block to the arena when it must live longer.

import { ConnectionHeader, type HeaderKey, isFieldName } from '../../common/text/header-names.js';
import { HeadKind } from '../../common/text/joined-names.js';
import { type Memory, NO_BLOCK, NoRoomError } from '../../io/memory.js';
import { StepPool } from '../step-pool.js';
import { HeaderFields } from './header-fields.js';

/** How the end of a body is determined (RFC 9112 section 6.3). */
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

/** Names of all methods except Method.Other, in the order of their numbers. */
export const METHOD_NAMES = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH'];

/** Returns the number of a method's name, which is case-sensitive. */
export function methodOf(name: string): Method {
  return METHOD_NAMES.indexOf(name) + 1;
}

export class HeaderBlock extends HeaderFields {
  /** Request: the method and its range. */
  method: Method = Method.Other;
  methodStart = 0;
  methodEnd = 0;
  /** Request: path with query, in origin form ("/a?b"), "*" or the authority of a CONNECT. */
  pathStart = 0;
  pathEnd = 0;
  /** Request: the scheme of its URL, or of x-forwarded-proto at the edge; '' without either. See requestScheme(). */
  scheme: '' | 'http' | 'https' = '';
  /** Response: status code; 0 in a request or trailers. */
  status = 0;
  /** Minor version of HTTP/1 as received: 0 or 1. */
  minorVersion = 1;
  /** The range of the start line as received, with CRLF; empty when it must be rewritten. */
  startLineStart = 0;
  startLineEnd = 0;

  bodyKind: BodyKind = BodyKind.None;
  /** With BodyKind.Length. */
  contentLength = 0;
  /** The connection ends after this message (Connection: close, or HTTP/1.0 without keep-alive). */
  close = false;
  /** Request: it asks for an upgrade (Connection: upgrade with an Upgrade field). Response: its status is 101. */
  upgrade = false;
  /** Expect: 100-continue. */
  expectContinue = false;
  /** The Connection field names fields for the next hop only, besides close, keep-alive and upgrade. */
  nominates = false;
  /** Offset after the empty line if that follows the last received field directly; otherwise 0. */
  headEnd = 0;
  /** Fields from this index on were added; -1: the message was not received. */
  receivedFields = -1;

  #block = NO_BLOCK;
  #retained = false;
  #isAbandoned = false;
  /** Reference count: one for the codec and one for each hold(). */
  #users = 1;
  readonly #pool: HeaderBlockPool | undefined;
  /** Next unused byte of the arena block. */
  #arenaNext = 0;

  constructor(memory: Memory, pool?: HeaderBlockPool) {
    super(memory);
    this.#pool = pool;
  }

  /** Resets the block and releases its arena block. */
  clear(): void {
    if (this.#block !== NO_BLOCK) {
      this.memory.release(this.#block);
      this.#block = NO_BLOCK;
    }
    this.#retained = false;
    this.#arenaNext = 0;
    this.clearFields();
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
    this.receivedFields = -1;
  }

  /** Keeps the block beyond its exchange: retains it and adds a reference until drop(). Returns false when the arena has no room. */
  hold(): boolean {
    if (!this.retain()) return false;
    this.#users++;
    return true;
  }

  /**
   * Removes a reference. After the last one, the arena block is released and this object is reused for another message; callers can still
   * read it until they return.
   */
  drop(): void {
    if (--this.#users > 0) return;
    this.#users = 1;
    if (this.#block !== NO_BLOCK) {
      this.memory.release(this.#block);
      this.#block = NO_BLOCK;
    }
    this.#retained = false;
    if (this.#isAbandoned) this.clearFields();
    else this.#pool?.put(this);
  }

  /** drop() for a block that a filter may still use at any time: the object is emptied and never reused. */
  abandon(): void {
    this.#isAbandoned = true;
    this.drop();
  }

  get kind(): HeadKind {
    if (this.status !== 0) return HeadKind.Response;
    return this.methodEnd > this.methodStart ? HeadKind.Request : HeadKind.Trailers;
  }

  /** Bytes of the arena that the block occupies. */
  get retainedBytes(): number {
    return this.#block === NO_BLOCK ? 0 : this.memory.blockSize(this.#block);
  }

  methodText(): string {
    return this.memory.text(this.methodStart, this.methodEnd);
  }
  pathText(): string {
    return this.memory.text(this.pathStart, this.pathEnd);
  }

  /**
   * Appends a field. The name must be valid. The value has one character per byte; byteText() converts other text. Throws if a character is
   * above 255 or is CR, LF or NUL, and for a second content-length, because some peers obey the first and others the last.
   */
  add(key: HeaderKey, value: string): void {
    // Values from JSON.parse() and the like bypass the compiler's types.
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

  /** Replaces all fields of this name with one. */
  set(key: HeaderKey, value: string): void {
    this.remove(key);
    this.add(key, value);
  }

  /**
   * Replaces the path, which has one character per byte as in add(). Throws unless it begins with a slash, is "*", or is the authority of a
   * CONNECT; also for a space, a control character, '#' or a character above 255.
   */
  setPath(path: string): void {
    const isTarget =
      typeof path === 'string' && (path.startsWith('/') || path === '*' || this.method === Method.Connect);
    if (!isTarget) throw unsuitable('a path', path);
    this.setTarget(path);
  }

  /**
   * setPath() without the check of the first character: a regex_rewrite may leave no slash, and as in Envoy the host decides what to do
   * then.
   */
  setTarget(path: string): void {
    if (path === '') throw unsuitable('a path', path);
    for (let i = 0; i < path.length; i++) if (!isInPath(path.charCodeAt(i))) throw unsuitable('a path', path);
    const start = this.writeText(path);
    this.pathStart = start;
    this.pathEnd = start + path.length;
    this.startLineEnd = this.startLineStart;
  }

  /**
   * Replaces the method. Throws if `text` is not a token, or does not match `method`: both ends must agree on the method to find the end of
   * the response.
   */
  setMethod(method: Method, text: string): void {
    if (!isFieldName(text)) throw unsuitable('a method', text);
    if (METHOD_NAMES.indexOf(text) !== method - 1)
      throw new TypeError(`the method '${text}' does not match the given Method`);
    this.method = method;
    this.methodStart = this.writeText(text);
    this.methodEnd = this.methodStart + text.length;
    this.startLineEnd = this.startLineStart;
  }

  /** Sets the status of a final response. Throws unless it is an integer from 200 to 999: hosts may send any of them. */
  setStatus(status: number): void {
    if (!(Number.isInteger(status) && status >= 200 && status <= 999))
      throw new RangeError(`${status} is not a status from 200 to 999`);
    this.status = status;
    this.startLineEnd = this.startLineStart;
  }

  /** Sets the reason phrase of an HTTP/1.1 response, one line of Latin-1, in place of that of its status. */
  setReason(phrase: string): void {
    const line = `HTTP/1.1 ${this.status} ${phrase}\r\n`;
    const start = this.writeText(line);
    this.startLineStart = start;
    this.startLineEnd = start + line.length;
  }

  /** Writes Latin-1 text to bytes that live as long as the block's other bytes. Returns their offset. */
  writeText(text: string): number {
    const start = this.room(text.length);
    const bytes = this.memory.bytes;
    for (let i = 0; i < text.length; i++) bytes[start + i] = text.charCodeAt(i);
    return start;
  }

  /** Takes over an arena block that all ranges point into. Additions are written from `next` on. */
  adopt(block: number, next: number): void {
    this.#block = block;
    this.#retained = true;
    this.#arenaNext = next;
  }

  /**
   * Moves all ranges to the arena, so that the block outlives the turn. Later additions go to the arena too. Returns false when the arena
   * has no room; the block is then unchanged.
   */
  retain(): boolean {
    return this.#retained || this.#moveToArena(0);
  }

  /**
   * Allocates `length` bytes that live as long as the block's other bytes: in scratch, or in the arena once the block is retained. The
   * block's ranges may move. Throws NoRoomError when the arena is full.
   */
  room(length: number): number {
    if (!this.#retained) return this.memory.scratch(length);
    if (!this.#moveToArena(length)) throw new NoRoomError('no room in the arena for a header that is added');
    return this.#arenaNext - length;
  }

  /** Copies all ranges to a new arena block with `spare` bytes after them, and releases the former block. */
  #moveToArena(spare: number): boolean {
    if (this.#block !== NO_BLOCK) {
      const end = this.#block + this.memory.blockSize(this.#block);
      if (this.#arenaNext + spare <= end) {
        this.#arenaNext += spare;
        return true;
      }
    }
    const { methodStart, methodEnd, pathStart, pathEnd, startLineStart, startLineEnd } = this;
    const startLine = methodEnd - methodStart + pathEnd - pathStart + startLineEnd - startLineStart;
    const block = this.memory.retain(startLine + this.linesLength() + spare);
    if (block === NO_BLOCK) return false;
    const next = this.#moveTo(block);
    if (this.#block !== NO_BLOCK) this.memory.release(this.#block);
    this.#block = block;
    this.#retained = true;
    this.#arenaNext = next + spare;
    this.headEnd = 0;
    return true;
  }

  /** Moves start line and fields to `to`. Returns the offset after them. */
  #moveTo(to: number): number {
    const { startLineStart: start, startLineEnd: end } = this;
    if (end > start) this.#shiftStartLine(to - start);
    else to = this.#moveTarget(to);
    return this.moveLines(to, start, end);
  }

  #shiftStartLine(shift: number): void {
    this.startLineStart += shift;
    this.startLineEnd += shift;
    this.methodStart += shift;
    this.methodEnd += shift;
    this.pathStart += shift;
    this.pathEnd += shift;
  }

  /** Moves method and path, for a start line that must be rewritten. Returns the offset after them. */
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
}

/** Returns whether a character is a byte that is allowed in a line. */
function isInLine(code: number): boolean {
  return code < 256 && code !== 13 && code !== 10 && code !== 0;
}

/** Returns whether a character is a byte that is allowed in a path. */
function isInPath(code: number): boolean {
  return code > 32 && code < 256 && code !== 127 && code !== 35;
}

function unsuitable(what: string, value: unknown): TypeError {
  return new TypeError(`invalid value of ${what}: ${(JSON.stringify(value) ?? String(value)).slice(0, 82)}`);
}

/** Returns the pool of header blocks of a memory; there is one for each. */
export function headerBlocks(memory: Memory): HeaderBlockPool {
  if (lastPool?.memory === memory) return lastPool;
  lastPool = pools.get(memory);
  if (lastPool === undefined) {
    lastPool = new HeaderBlockPool(memory);
    pools.set(memory, lastPool);
  }
  return lastPool;
}

const pools = new WeakMap<Memory, HeaderBlockPool>();
let lastPool: HeaderBlockPool | undefined;

export class HeaderBlockPool {
  readonly memory: Memory;
  readonly #blocks: StepPool<HeaderBlock>;

  constructor(memory: Memory) {
    this.memory = memory;
    this.#blocks = new StepPool(memory, () => new HeaderBlock(memory, this));
  }

  /** Returns an empty block; drop() returns it to the pool. */
  take(): HeaderBlock {
    const block = this.#blocks.take();
    block.clear();
    return block;
  }

  /** Called by HeaderBlock.drop(). */
  put(block: HeaderBlock): void {
    this.#blocks.release(block);
  }
}
