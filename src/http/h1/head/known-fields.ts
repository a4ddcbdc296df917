// A cache of the field lines of earlier heads. Most requests of a client, and most responses of a host, repeat the lines of earlier ones at
// the same position. Such lines are compared, many bytes at a time, instead of being parsed again.
//
// A slot holds the lines of one head, as bytes and as parsed records. Heads of different length have different slots, so that alternating
// clients find theirs.

import { isConnectionHeader, knownHeader, OTHER_HEADER } from '../../../common/text/header-names.js';
import type { Memory } from '../../../io/memory.js';
import type { HeaderBlock } from '../../headers/header-block.js';
import { FIELD_WORDS, Field } from '../../headers/header-fields.js';

const SLOTS_A_KIND = 16;
const SLOTS = 2 * SLOTS_A_KIND;
/** Limits of one slot. Lines beyond them are parsed each time. */
const MAX_BYTES = 2048;
const MAX_LINES = 32;
const RECORD_WORDS = MAX_LINES * FIELD_WORDS;

/** A slot is refilled by only one in this many heads with unknown lines: copying each would cost more than it saves. */
const HEADS_A_REFILL = 64;

/** Line end in a record that must never match. */
const NOWHERE = 0x7fffffff;

/** Lines with these names are never cached: whether another client's secret matched must not show in the time that a head takes. */
const SECRETS = [
  knownHeader('authorization'),
  knownHeader('cookie'),
  knownHeader('proxy-authorization'),
  knownHeader('set-cookie'),
];
/** Other names that suggest a secret. */
const SECRET_NAME = /auth|cert|cookie|cred|csrf|jwt|key|pass|secret|session|sign|token|xsrf/;

/** Returns whether lines with this known name are parsed each time. */
export function isSecret(id: number): boolean {
  return SECRETS.includes(id);
}

export class KnownFields {
  readonly #memory: Memory;
  readonly #text = new Uint8Array(SLOTS * MAX_BYTES);
  readonly #textView = new DataView(this.#text.buffer);
  readonly #records = new Int32Array(SLOTS * RECORD_WORDS);
  readonly #lines = new Int32Array(SLOTS);
  readonly #lengths = new Int32Array(SLOTS);
  /** A bit for each line with a ConnectionHeader name. */
  readonly #connectionLines = new Int32Array(SLOTS);
  readonly #untilRefill = new Int32Array(SLOTS);
  #slot = 0;

  constructor(memory: Memory) {
    this.#memory = memory;
  }

  /** Selects the slot for a head of this HeadKind, of whose fields at most `bytes` have arrived. The next calls refer to it. */
  choose(kind: number, bytes: number): void {
    this.#slot = kind * SLOTS_A_KIND + (bytes % SLOTS_A_KIND);
  }

  /** Returns how many lines in [at, end) equal those of the earlier head from line number `line` on. */
  match(line: number, at: number, end: number): number {
    const slot = this.#slot;
    const lines = this.#lines[slot]!;
    if (line >= lines) return 0;
    const records = this.#records;
    const length = this.#lengths[slot]!;
    let record = slot * RECORD_WORDS + line * FIELD_WORDS;
    const start = records[record + Field.NameStart]!;
    const most = Math.min(length - start, end - at);
    const same = start + sameBytes(this.#memory.view, at, this.#textView, slot * MAX_BYTES + start, most);
    let known = line;
    for (; known < lines && records[record + Field.LineEnd]! <= same; record += FIELD_WORDS) known++;
    return known - line;
  }

  /** Adds `count` lines that match() found to `head`; the first begins at `at`. */
  addTo(head: HeaderBlock, line: number, count: number, at: number): void {
    const record = this.#slot * RECORD_WORDS + line * FIELD_WORDS;
    head.addFields(this.#records, record, count, at - this.#records[record + Field.NameStart]!);
  }

  /** Returns which of `count` lines from number `line` on have a ConnectionHeader name, as bits; line 0 is the lowest. */
  connectionLines(line: number, count: number): number {
    const upTo = count === MAX_LINES ? -1 : (1 << count) - 1;
    return this.#connectionLines[this.#slot]! & (upTo << line);
  }

  /** Considers a head with unknown lines for the slot; its field lines begin at `start`. */
  remember(head: HeaderBlock, start: number): void {
    const slot = this.#slot;
    if (--this.#untilRefill[slot]! >= 0) return;
    this.#untilRefill[slot] = HEADS_A_REFILL - 1;
    const text = this.#text.subarray(slot * MAX_BYTES, (slot + 1) * MAX_BYTES);
    const records = this.#records.subarray(slot * RECORD_WORDS, (slot + 1) * RECORD_WORDS);
    let lines = 0;
    while (lines < head.size && lines < MAX_LINES && head.lineEnd(lines) - start <= MAX_BYTES) lines++;
    head.copyFields(records, 0, lines, start);
    let length = 0;
    let connectionLines = 0;
    for (let line = 0; line < lines; line++) {
      const end = head.lineEnd(line) - start;
      const id = head.id(line);
      if (isConnectionHeader(id)) connectionLines |= 1 << line;
      if (isSecret(id) || (id === OTHER_HEADER && SECRET_NAME.test(head.name(line)))) {
        text.fill(0, length, end);
        records[line * FIELD_WORDS + Field.LineEnd] = NOWHERE;
      } else text.set(this.#memory.bytes.subarray(start + length, start + end), length);
      length = end;
    }
    this.#connectionLines[slot] = connectionLines;
    this.#lines[slot] = lines;
    this.#lengths[slot] = length;
  }
}

/**
 * Returns how many of `most` bytes from `a` in `left` and from `b` in `right` are equal. Compares them as float64, the widest comparison:
 * equal numbers have equal bytes except for the two zeros, whose bytes occur in no line; equal bytes are equal numbers except for NaN,
 * which the four-byte steps handle.
 */
function sameBytes(left: DataView, a: number, right: DataView, b: number, most: number): number {
  const isSame = (at: number): boolean => left.getFloat64(a + at, true) === right.getFloat64(b + at, true);
  let same = 0;
  while (same + 32 <= most && isSame(same) && isSame(same + 8) && isSame(same + 16) && isSame(same + 24)) same += 32;
  while (same + 4 <= most && left.getInt32(a + same, true) === right.getInt32(b + same, true)) same += 4;
  while (same < most && left.getUint8(a + same) === right.getUint8(b + same)) same++;
  return same;
}
