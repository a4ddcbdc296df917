// DNS messages (RFC 1035 section 4): parses queries and encodes responses. Names in messages are never compressed, as in Envoy.

export const enum RecordType {
  A = 1,
  Aaaa = 28,
  Srv = 33,
}

export const enum ResponseCode {
  NoError = 0,
  FormatError = 1,
  NameError = 3,
  NotImplemented = 4,
}

/** Why a message is not a query. */
export const enum QueryMistake {
  None = 0,
  /** It ends within its header. */
  Underflow = 1,
  /** It has records of a response. */
  HasRecords = 2,
  /** It has not exactly one question. */
  Questions = 3,
  /** Its question is malformed, or of another class. */
  Question = 4,
  /** It is a response. It must not be answered: two servers would answer each other forever. */
  Response = 5,
}

export interface Query {
  readonly mistake: QueryMistake;
  readonly id: number;
  readonly flags: number;
  /** It has additional records, which are ignored. */
  readonly hasAdditional: boolean;
  /** Without a final dot; '' after a mistake. */
  readonly name: string;
  readonly type: number;
  /** The question as received. */
  readonly question: Uint8Array;
}

/** A record of a response; `data` is RDATA. */
export interface ResourceRecord {
  readonly name: string;
  readonly type: RecordType;
  readonly ttlSeconds: number;
  readonly data: Uint8Array;
}

export interface Response {
  readonly code: ResponseCode;
  /** Recursion is available. */
  readonly isRecursive: boolean;
  readonly answers: readonly ResourceRecord[];
  readonly additional: readonly ResourceRecord[];
}

/** Over UDP without EDNS (RFC 1035 section 2.3.4). */
const MAX_RESPONSE_BYTES = 512;
/** As in Envoy. */
const MAX_ANSWERS = 8;
const HEADER_BYTES = 12;
const MAX_LABEL_BYTES = 63;
const MAX_NAME_BYTES = 255;
const CLASS_INTERNET = 1;
const NO_QUESTION = new Uint8Array();

/** Bits of the flags. */
const IS_RESPONSE = 0x8000;
const OPCODE = 0x7800;
const RECURSION_DESIRED = 0x0100;
const RECURSION_AVAILABLE = 0x0080;

/** Parses any bytes. Never throws. */
export function parseQuery(bytes: Uint8Array): Query {
  const id = wordAt(bytes, 0);
  const flags = wordAt(bytes, 2);
  const faulty = (mistake: QueryMistake, hasAdditional = false): Query => {
    return { mistake, id, flags, hasAdditional, name: '', type: 0, question: NO_QUESTION };
  };
  if (bytes.length < HEADER_BYTES) return { ...faulty(QueryMistake.Underflow), flags: 0 };
  if ((flags & IS_RESPONSE) !== 0) return faulty(QueryMistake.Response);
  if (wordAt(bytes, 6) !== 0 || wordAt(bytes, 8) !== 0) return faulty(QueryMistake.HasRecords);
  const hasAdditional = wordAt(bytes, 10) !== 0;
  if (wordAt(bytes, 4) !== 1) return faulty(QueryMistake.Questions, hasAdditional);
  const labels: string[] = [];
  let at = HEADER_BYTES;
  for (;;) {
    const length = bytes[at++];
    if (length === 0) break;
    // A question has no pointers: there is nothing before it to point to.
    if (length === undefined || length > MAX_LABEL_BYTES || at + length - HEADER_BYTES > MAX_NAME_BYTES)
      return faulty(QueryMistake.Question, hasAdditional);
    if (at + length > bytes.length) return faulty(QueryMistake.Question, hasAdditional);
    labels.push(Buffer.from(bytes.buffer, bytes.byteOffset + at, length).toString('latin1'));
    at += length;
  }
  const end = at + 4;
  if (labels.length === 0 || end > bytes.length || wordAt(bytes, at + 2) !== CLASS_INTERNET)
    return faulty(QueryMistake.Question, hasAdditional);
  const question = bytes.slice(HEADER_BYTES, end);
  return {
    mistake: QueryMistake.None,
    id,
    flags,
    hasAdditional,
    name: labels.join('.'),
    type: wordAt(bytes, at),
    question,
  };
}

/** Encodes a response. Records that do not fit are left out, as in Envoy without a notice of that: nothing listens on TCP. */
export function encodeResponse({ flags, id, question }: Query, response: Response): Uint8Array {
  const bytes = Buffer.alloc(MAX_RESPONSE_BYTES);
  const answers = response.answers.slice(0, MAX_ANSWERS);
  bytes.writeUInt16BE(id, 0);
  const echoed = flags & (OPCODE | RECURSION_DESIRED);
  bytes.writeUInt16BE(IS_RESPONSE | echoed | (response.isRecursive ? RECURSION_AVAILABLE : 0) | response.code, 2);
  bytes.writeUInt16BE(question.length > 0 ? 1 : 0, 4);
  bytes.set(question, HEADER_BYTES);
  let end = HEADER_BYTES + question.length;
  for (const [list, countAt] of [
    [answers, 6],
    [response.additional, 10],
  ] as const) {
    let count = 0;
    for (const record of list) {
      const next = writeRecord(bytes, end, record);
      if (next < 0) break;
      end = next;
      count++;
    }
    bytes.writeUInt16BE(count, countAt);
  }
  return bytes.subarray(0, end);
}

/** Returns the RDATA of an SRV record (RFC 2782). */
export function srvData(priority: number, weight: number, port: number, target: string): Uint8Array {
  const name = encodeName(target);
  const data = Buffer.alloc(6 + name.length);
  data.writeUInt16BE(priority, 0);
  data.writeUInt16BE(weight, 2);
  data.writeUInt16BE(port, 4);
  data.set(name, 6);
  return data;
}

/** Returns where the record ends; -1: it does not fit. */
function writeRecord(bytes: Buffer, at: number, { data, name, ttlSeconds, type }: ResourceRecord): number {
  const encoded = encodeName(name);
  const fixed = at + encoded.length;
  const end = fixed + 10 + data.length;
  if (end > bytes.length) return -1;
  bytes.set(encoded, at);
  bytes.writeUInt16BE(type, fixed);
  bytes.writeUInt16BE(CLASS_INTERNET, fixed + 2);
  bytes.writeUInt32BE(ttlSeconds, fixed + 4);
  bytes.writeUInt16BE(data.length, fixed + 8);
  bytes.set(data, fixed + 10);
  return end;
}

function encodeName(name: string): Uint8Array {
  const parts: number[] = [];
  for (const label of name.split('.')) {
    const text = Buffer.from(label, 'latin1').subarray(0, MAX_LABEL_BYTES);
    if (text.length > 0) parts.push(text.length, ...text);
  }
  return Uint8Array.from([...parts, 0]);
}

/** Returns 0 for missing bytes. */
function wordAt(bytes: Uint8Array, at: number): number {
  return ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0);
}
