// Estimates from an expression's text how large its RE2 program is. RE2 reports the size only after compiling, and its
// binding does not expose it at all.

import { classAt, escapeAt } from './regex-classes.js';

export interface RegexSize {
  /**
   * The number of instructions in RE2's program as Envoy counts them, or slightly less, never more; 0 if unknown. Envoy
   * compiles for bytes: `.` is two byte ranges.
   */
  readonly program: number;
  /** Approximate cost of compiling and matching: the instructions of a program for UTF-8. */
  readonly cost: number;
}

/** Returns the size of an expression. Never throws: an invalid expression has a size too. */
export function regexSize(pattern: string): RegexSize {
  return new Measurement(pattern).run();
}

/** A part of a sequence: a character, a class or a group, with its repetition. */
interface Item {
  size: number;
  cost: number;
  /** Equal for equal parts; rarely equal for different ones. `base` is the same without the repetition. */
  hash: number;
  readonly base: number;
  /** A single character, or a class. */
  readonly isCharacter: boolean;
  min: number;
  isUnbounded: boolean;
  isRepeated: boolean;
}

interface Group {
  readonly isCapturing: boolean;
  readonly branches: Item[][];
  items: Item[];
}

/** Instructions besides those of the expression itself, at least. */
const FRAME = 0;
const CAPTURE = 2;
/** In UTF-8. */
const ANY_COST = 12;
const PROPERTY_COST = 1000;
/** RE2's limit of copies. */
const MAX_COPIES = 1000;

/** Matches `(`, `(?:`, `(?i:`, `(?P<name>`, and `(?i)`, which opens no group. */
const GROUP_START = /\((?:\?(?:(P?<[^>]{0,100}>)|[a-zA-Z-]{0,10}(:|\))))?/y;
const BOUNDS = /\{(\d{1,9})(?:(,)(\d{0,9}))?\}/y;

class Measurement {
  readonly #pattern: string;
  readonly #dotSize: number;
  readonly #groups: Group[] = [newGroup(false)];
  #at = 0;
  #isCertain = true;

  constructor(pattern: string) {
    this.#pattern = pattern;
    // With the flag s anywhere in the expression, `.` may be one range.
    this.#dotSize = /\(\?[a-zA-Z]{0,10}s/.test(pattern) ? 1 : 2;
  }

  run(): RegexSize {
    while (this.#at < this.#pattern.length) this.#step();
    while (this.#groups.length > 1) this.#close();
    const { cost, size } = itemOf(this.#groups[0]!);
    return { program: this.#isCertain ? size + FRAME : 0, cost };
  }

  #step(): void {
    const group = this.#groups.at(-1)!;
    const character = this.#pattern[this.#at];
    switch (character) {
      case '(':
        return this.#open();
      case ')':
        this.#at++;
        return this.#close();
      case '|':
        this.#at++;
        group.branches.push(group.items);
        group.items = [];
        return;
      case '*':
        return this.#repeat(1, 0, Infinity);
      case '+':
        return this.#repeat(1, 1, Infinity);
      case '?':
        return this.#repeat(1, 0, 1);
      case '{':
        return this.#bounds();
      case '^':
      case '$':
        return this.#add(1, 0, 1, false);
      case '.':
        return this.#add(1, this.#dotSize, ANY_COST, true);
      case '[': {
        const { end, isUnknown, isWide, ranges } = classAt(this.#pattern, this.#at);
        if (isUnknown) this.#isCertain = false;
        return this.#add(end - this.#at, ranges, isUnknown ? PROPERTY_COST : ranges * (isWide ? ANY_COST : 1), true);
      }
      case '\\':
        return this.#pattern[this.#at + 1] === 'Q' ? this.#quoted() : this.#escape();
      default:
        return this.#literal();
    }
  }

  #open(): void {
    const found = matchAt(GROUP_START, this.#pattern, this.#at)!;
    this.#at += found[0].length;
    if (found[2] === ')') return;
    this.#groups.push(newGroup(found[2] === undefined));
  }

  #close(): void {
    if (this.#groups.length === 1) return;
    const closed = itemOf(this.#groups.pop()!);
    this.#groups.at(-1)!.items.push(closed);
  }

  #bounds(): void {
    const found = matchAt(BOUNDS, this.#pattern, this.#at);
    if (found === null) return this.#literal();
    const min = Number(found[1]);
    const max = found[2] === undefined ? min : found[3] === '' ? Infinity : Number(found[3]);
    this.#repeat(found[0].length, min, max);
  }

  #repeat(length: number, min: number, max: number): void {
    this.#at += length;
    const item = this.#groups.at(-1)!.items.at(-1);
    // Without anything to repeat the expression is invalid.
    if (item !== undefined) repeat(item, min, max);
  }

  #escape(): void {
    const { end, isUnknown, isWide, ranges } = escapeAt(this.#pattern, this.#at);
    if (isUnknown) this.#isCertain = false;
    const cost = isUnknown ? PROPERTY_COST : Math.max(1, ranges) * (isWide ? ANY_COST : 1);
    this.#add(end - this.#at, ranges, cost, ranges > 0);
  }

  #quoted(): void {
    const found = this.#pattern.indexOf('\\E', this.#at + 2);
    const end = found < 0 ? this.#pattern.length : found;
    for (this.#at += 2; this.#at < end; ) this.#literal();
    this.#at = Math.min(this.#pattern.length, end + 2);
  }

  #literal(): void {
    const code = this.#pattern.charCodeAt(this.#at);
    this.#add(1, 1, code < 0x80 ? 1 : code < 0x800 ? 2 : 3, true);
  }

  #add(length: number, size: number, cost: number, isCharacter: boolean): void {
    let hash = 0;
    for (let end = this.#at + length; this.#at < end; this.#at++) hash = mix(hash, this.#pattern.charCodeAt(this.#at));
    this.#groups.at(-1)!.items.push(newItem(size, cost, hash, isCharacter));
  }
}

function newGroup(isCapturing: boolean): Group {
  return { isCapturing, branches: [], items: [] };
}

function newItem(size: number, cost: number, hash: number, isCharacter: boolean): Item {
  return { size, cost, hash, base: hash, isCharacter, min: 1, isUnbounded: false, isRepeated: false };
}

function repeat(item: Item, min: number, max: number): void {
  const copies = Math.min(MAX_COPIES, max === Infinity ? Math.max(1, min) : max);
  // RE2 may simplify a double repetition: the product is then too large.
  item.size *= copies;
  item.cost = item.cost * copies + copies;
  item.hash = mix(mix(item.hash, min), max === Infinity ? -1 : max);
  item.min = item.isRepeated ? Math.min(item.min, min) : min;
  item.isUnbounded ||= max === Infinity;
  item.isRepeated = true;
}

/** Returns a group as one part of the surrounding sequence. */
function itemOf({ branches, isCapturing, items }: Group): Item {
  const all = [...branches, items];
  const own = isCapturing ? CAPTURE : 0;
  // (?:a) equals a; repeating it repeats a again if a is repeated.
  if (branches.length === 0 && items.length === 1 && !isCapturing) return items[0]!;
  let hash = own;
  let cost = own;
  for (const branch of all) {
    hash = mix(hash, -2);
    cost++;
    for (const item of branch) {
      hash = mix(hash, item.hash);
      cost += item.cost;
    }
  }
  const size = branches.length === 0 ? sequenceSize(items) : alternativesSize(all);
  const isClass = own === 0 && branches.length > 0 && all.every((branch) => branch.length === 1 && isPlain(branch[0]!));
  const item = newItem(own + size, cost, hash, isClass);
  // RE2 may keep a part that matches no character once, however often it is repeated.
  if (size === 0) item.isRepeated = true;
  return item;
}

function isPlain({ isCharacter, isRepeated }: Item): boolean {
  return isCharacter && !isRepeated;
}

function sequenceSize(items: readonly Item[]): number {
  let size = 0;
  for (let from = 0, to = 0; from < items.length; from = to) {
    const first = items[from]!;
    for (to = from + 1; first.isCharacter && items[to]?.isCharacter && items[to]!.base === first.base; ) to++;
    size += runSize(items.slice(from, to));
  }
  return size;
}

/** Returns the size of one part, or of equal adjacent characters: RE2 compiles a*a* as a*, and aa* as a+. */
function runSize(run: readonly Item[]): number {
  if (!run.some(({ isUnbounded }) => isUnbounded)) return run.reduce((sum, { size }) => sum + size, 0);
  if (run.length === 1) return run[0]!.size;
  const copies = Math.max(
    1,
    run.reduce((sum, { min }) => sum + min, 0),
  );
  const single = Math.min(...run.map(({ min, size }) => size / Math.max(1, min)));
  return copies * Math.max(1, Math.floor(single));
}

interface TrieNode {
  readonly item: Item | undefined;
  readonly next: Map<number, TrieNode>;
}

/** Returns the size of alternatives. A common prefix counts once, and single-character alternatives form one class. */
function alternativesSize(branches: readonly (readonly Item[])[]): number {
  const root: TrieNode = { item: undefined, next: new Map() };
  for (const branch of branches) {
    let node = root;
    for (const item of branch) {
      let next = node.next.get(item.hash);
      if (next === undefined) node.next.set(item.hash, (next = { item, next: new Map() }));
      node = next;
    }
  }
  let size = 0;
  const open = [root];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    let classSize = 0;
    for (const next of node.next.values()) {
      open.push(next);
      if (next.next.size === 0 && isPlain(next.item!)) classSize = 1;
      else size += next.item!.size;
    }
    size += classSize;
  }
  return size;
}

function mix(hash: number, value: number): number {
  return (Math.imul(hash ^ value, 0x9e3779b1) ^ (hash >>> 15)) | 0;
}

/** Matches a sticky expression at `at`. */
function matchAt(expression: RegExp, text: string, at: number): RegExpExecArray | null {
  expression.lastIndex = at;
  return expression.exec(text);
}
