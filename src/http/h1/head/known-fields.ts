// Field lines of earlier heads. A client's requests, and a host's answers, mostly have the lines that those before them had, at the
// same places: such lines are compared with what they were, many bytes at a time, instead of being read again.
//
// A slot holds the lines of one head, as bytes and as the parser found them. Heads of different length have different
// slots, so that clients who take turns find theirs.

import { isConnectionHeader, knownHeader, OTHER_HEADER } from '../../../common/text/header-names.js';
import type { Memory } from '../../../io/memory.js';
import type { HeaderBlock } from '../../headers/header-block.js';
import { FIELD_WORDS, Field } from '../../headers/header-fields.js';

const SLOTS_A_KIND = 16;
const SLOTS = 2 * SLOTS_A_KIND;
/** Of one slot; what stands behind is read anew each time. */
const MOST_BYTES = 2048;
const MOST_LINES = 32;
const RECORD_WORDS = MOST_LINES * FIELD_WORDS;

/** Of the heads with lines that their slot does not know, so many go by before one takes its place: copying each would cost more than it saves. */
const HEADS_A_REFILL = 64;

/** Where a line ends that no other one is to be the same as, whatever bytes come. */
const NOWHERE = 0x7fffffff;

/** Whether such a line was right must not show in the time that another client's head takes. */
const SECRETS = [
  knownHeader('authorization'),
  knownHeader('cookie'),
  knownHeader('proxy-authorization'),
  knownHeader('set-cookie'),
];
/** Names that others give to such lines. */
const SECRET_NAME = /auth|cert|cookie|cred|csrf|jwt|key|pass|secret|session|sign|token|xsrf/;

/** Whether lines with this name, which has a number, are read anew each time. */
export function isSecret(id: number): boolean {
  return SECRETS.includes(id);
}

export class KnownFields {
  readonly #memory: Memory;
  readonly #text = new Uint8Array(SLOTS * MOST_BYTES);
  readonly #textView = new DataView(this.#text.buffer);
  readonly #records = new Int32Array(SLOTS * RECORD_WORDS);
  readonly #lines = new Int32Array(SLOTS);
  readonly #lengths = new Int32Array(SLOTS);
  /** A bit for each line that the parser looks into. */
  readonly #connectionLines = new Int32Array(SLOTS);
  readonly #untilRefill = new Int32Array(SLOTS);
  #slot = 0;

  constructor(memory: Memory) {
    this.#memory = memory;
  }

  /** A head of this HeadKind begins, of whose fields `bytes` or fewer are there: the next calls are about it. */
  choose(kind: number, bytes: number): void {
    this.#slot = kind * SLOTS_A_KIND + (bytes % SLOTS_A_KIND);
  }

  /** How many lines from `at` on, which may reach up to `end`, are those from number `line` on of the earlier head. */
  match(line: number, at: number, end: number): number {
    const slot = this.#slot;
    const lines = this.#lines[slot]!;
    if (line >= lines) return 0;
    const records = this.#records;
    const length = this.#lengths[slot]!;
    let record = slot * RECORD_WORDS + line * FIELD_WORDS;
    const start = records[record + Field.NameStart]!;
    const most = Math.min(length - start, end - at);
    const same = start + sameBytes(this.#memory.view, at, this.#textView, slot * MOST_BYTES + start, most);
    let known = line;
    for (; known < lines && records[record + Field.LineEnd]! <= same; record += FIELD_WORDS) known++;
    return known - line;
  }

  /** Adds `count` lines that match() found, the first of which begins at `at`. */
  addTo(head: HeaderBlock, line: number, count: number, at: number): void {
    const record = this.#slot * RECORD_WORDS + line * FIELD_WORDS;
    head.addFields(this.#records, record, count, at - this.#records[record + Field.NameStart]!);
  }

  /** Which of `count` lines from number `line` on have a name of ConnectionHeader: a bit each, that of line 0 the lowest. */
  connectionLines(line: number, count: number): number {
    const upTo = count === MOST_LINES ? -1 : (1 << count) - 1;
    return this.#connectionLines[this.#slot]! & (upTo << line);
  }

  /** A head has lines that match() did not know; they begin at `start`. */
  remember(head: HeaderBlock, start: number): void {
    const slot = this.#slot;
    if (--this.#untilRefill[slot]! >= 0) return;
    this.#untilRefill[slot] = HEADS_A_REFILL - 1;
    const text = this.#text.subarray(slot * MOST_BYTES, (slot + 1) * MOST_BYTES);
    const records = this.#records.subarray(slot * RECORD_WORDS, (slot + 1) * RECORD_WORDS);
    let lines = 0;
    while (lines < head.size && lines < MOST_LINES && head.lineEnd(lines) - start <= MOST_BYTES) lines++;
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
 * How many bytes behind `a` in `left` and behind `b` in `right` are the same, of `most`. As numbers of eight
 * bytes, the most that one comparison takes: equal ones have the same bytes, but for the two zeros, which are bytes that no line has;
 * and the same bytes are equal, but for NaN, which the steps of four bytes clear up.
 */
function sameBytes(left: DataView, a: number, right: DataView, b: number, most: number): number {
  const isSame = (at: number): boolean => left.getFloat64(a + at, true) === right.getFloat64(b + at, true);
  let same = 0;
  while (same + 32 <= most && isSame(same) && isSame(same + 8) && isSame(same + 16) && isSame(same + 24)) same += 32;
  while (same + 4 <= most && left.getInt32(a + same, true) === right.getInt32(b + same, true)) same += 4;
  while (same < most && left.getUint8(a + same) === right.getUint8(b + same)) same++;
  return same;
}
