// %REQ(X?Y):Z%, %RESP(…)% and %TRAILER(…)%: header values, copied as bytes from where they were received.

import { type HeaderKey, headerKey } from '../../common/text/header-names.js';
import type { LogBuffer } from '../log-buffer.js';
import type { HeaderView } from '../stream/header-view.js';
import type { StreamInfo } from '../stream/stream-info.js';
import type { Operator } from './operator.js';

/** The heads of a stream. */
export type HeadName = 'request' | 'response' | 'trailers';

export interface HeaderSelection {
  head: HeadName;
  /** Names in order of preference: fields, or `:method`, `:path`, `:authority`, `:scheme`, `:status`. */
  names: readonly string[];
  /** Values are truncated to this length. */
  maxBytes?: number;
  /** Removes the query from the value. */
  withoutQuery?: boolean;
  /** The output is a header value, of a message that is not sent yet. */
  isInHeader?: boolean;
}

/** The place of a value in a head. */
const enum Place {
  Field = 0,
  Method = 1,
  Path = 2,
  Scheme = 3,
  Status = 4,
  /** A pseudo-header that this kind of head does not have. */
  None = 5,
}

interface Source {
  place: Place;
  key: HeaderKey;
}

const QUESTION_MARK = 63;

export class HeaderOperator implements Operator {
  readonly isNumber = false;
  readonly #head: HeadName;
  readonly #first: Source;
  readonly #second: Source | undefined;
  readonly #maxBytes: number;
  readonly #withoutQuery: boolean;

  constructor(selection: HeaderSelection) {
    const { head, names, maxBytes = Number.MAX_SAFE_INTEGER, withoutQuery = false, isInHeader = false } = selection;
    this.#head = head;
    this.#first = source(head, names[0]!, isInHeader);
    this.#second = names.length > 1 ? source(head, names[1]!, isInHeader) : undefined;
    this.#maxBytes = maxBytes;
    this.#withoutQuery = withoutQuery;
  }

  write(info: StreamInfo, out: LogBuffer): boolean {
    const view = this.#view(info);
    if (view === undefined) return false;
    if (this.#writeSource(this.#first, view, info, out)) return true;
    return this.#second !== undefined && this.#writeSource(this.#second, view, info, out);
  }

  #view(info: StreamInfo): HeaderView | undefined {
    if (this.#head === 'request') return info.requestHeaders;
    return this.#head === 'response' ? info.responseHeaders : info.responseTrailers;
  }

  #writeSource({ place, key }: Source, view: HeaderView, info: StreamInfo, out: LogBuffer): boolean {
    switch (place) {
      case Place.Field: {
        const index = view.findValue(key);
        return index >= 0 && this.#writeRange(view, view.valueStart(index), view.valueEnd(index), out);
      }
      case Place.Method:
        return view.methodEnd > view.methodStart && this.#writeRange(view, view.methodStart, view.methodEnd, out);
      case Place.Path:
        return view.pathEnd > view.pathStart && this.#writeRange(view, view.pathStart, view.pathEnd, out);
      case Place.Scheme:
        out.text(info.scheme, 0, Math.min(info.scheme.length, this.#maxBytes));
        return info.scheme !== '';
      case Place.Status:
        if (view.status === 0) return false;
        out.text(String(view.status), 0, Math.min(3, this.#maxBytes));
        return true;
      default:
        return false;
    }
  }

  #writeRange(view: HeaderView, start: number, end: number, out: LogBuffer): boolean {
    const { memory } = view;
    if (this.#withoutQuery) end = pathEnd(memory.bytes, start, end);
    if (end - start > this.#maxBytes) end = start + this.#maxBytes;
    out.range(memory.view, start, end);
    return true;
  }
}

/** Returns the start of the query. Not indexOf(), which would search the thread's whole memory if there is none. */
function pathEnd(bytes: Uint8Array, start: number, end: number): number {
  for (let at = start; at < end; at++) if (bytes[at] === QUESTION_MARK) return at;
  return end;
}

function source(head: HeadName, name: string, isInHeader: boolean): Source {
  const key = headerKey(name);
  // As in Envoy, a logged response has no transfer coding: the codec of the client's connection frames it.
  if (head === 'response' && key.name === 'transfer-encoding' && !isInHeader) return { place: Place.None, key };
  if (!name.startsWith(':')) return { place: Place.Field, key };
  switch (`${head} ${key.name}`) {
    case 'request :method':
      return { place: Place.Method, key };
    case 'request :path':
      return { place: Place.Path, key };
    case 'request :authority':
      return { place: Place.Field, key: headerKey('host') };
    case 'request :scheme':
      return { place: Place.Scheme, key };
    case 'response :status':
      return { place: Place.Status, key };
    default:
      return { place: Place.None, key };
  }
}
