// Sizes of heads (%REQUEST_HEADERS_BYTES% and its relatives) and the bytes of a stream on the wire.

import { headerKey } from '../../common/text/header-names.js';
import type { LogBuffer } from '../log-buffer.js';
import type { HeaderView } from '../stream/header-view.js';
import type { StreamInfo } from '../stream/stream-info.js';
import type { HeadName } from './header-operator.js';
import type { HeaderNeeds, Operator } from './operator.js';

const HOST = headerKey('host');
const TRANSFER_ENCODING = headerKey('transfer-encoding');
/** What the name :authority has more than `host`. */
const AUTHORITY_EXTRA = ':authority'.length - 'host'.length;
export const STATUS_BYTES = ':status200'.length;

/** Names and values of a head, with pseudo-headers as in HTTP/2: as Envoy counts them for every version. */
export class HeadersBytesOperator implements Operator {
  readonly isNumber = true;
  readonly #head: HeadName;

  constructor(head: HeadName, needs: HeaderNeeds) {
    this.#head = head;
    // Any name: the head must be kept.
    needs[head].add(head === 'request' ? ':path' : 'date');
  }

  write(info: StreamInfo, out: LogBuffer): boolean {
    out.number(headBytes[this.#head](info));
    return true;
  }
}

/** Bytes of heads, as HeadersBytesOperator writes them. */
export const headBytes: Readonly<Record<HeadName, (info: StreamInfo) => number>> = {
  request: ({ requestHeaders, scheme }) => (requestHeaders === undefined ? 0 : requestBytes(requestHeaders, scheme)),
  response: ({ responseHeaders }) => (responseHeaders === undefined ? 0 : bytesOf(responseHeaders) + STATUS_BYTES),
  trailers: ({ responseTrailers }) => responseTrailers?.fieldBytes ?? 0,
};

/** Returns the bytes of a request's head in the same way. */
export function requestBytes(view: HeaderView, scheme: string): number {
  const { pathStart, pathEnd, methodStart, methodEnd } = view;
  const pseudo = ':method'.length + methodEnd - methodStart + ':path'.length + pathEnd - pathStart;
  const authority = view.find(HOST) >= 0 ? AUTHORITY_EXTRA : 0;
  return bytesOf(view) + pseudo + ':scheme'.length + scheme.length + authority;
}

/** Without transfer-encoding, which belongs to the connection. */
function bytesOf(view: HeaderView): number {
  const index = view.find(TRANSFER_ENCODING);
  const coding = index < 0 ? 0 : TRANSFER_ENCODING.name.length + view.valueEnd(index) - view.valueStart(index);
  return view.fieldBytes - coding;
}

/** The client's side. */
export const downstreamBytes = {
  received: ({ downstreamBytes }: StreamInfo): number => downstreamBytes?.received ?? 0,
  sent: ({ downstreamBytes }: StreamInfo): number => downstreamBytes?.sent ?? 0,
  headersReceived: ({ downstreamBytes }: StreamInfo): number => downstreamBytes?.headersReceived ?? 0,
  headersSent: ({ downstreamBytes }: StreamInfo): number => downstreamBytes?.headersSent ?? 0,
};

/** The hosts' side: all tries. */
export const upstreamBytes = {
  received: ({ runningTryBytes, upstreamBytes }: StreamInfo): number =>
    upstreamBytes.received + (runningTryBytes?.received ?? 0),
  sent: ({ runningTryBytes, upstreamBytes }: StreamInfo): number => upstreamBytes.sent + (runningTryBytes?.sent ?? 0),
  headersReceived: ({ runningTryBytes, upstreamBytes }: StreamInfo): number =>
    upstreamBytes.headersReceived + (runningTryBytes?.headersReceived ?? 0),
  headersSent: ({ runningTryBytes, upstreamBytes }: StreamInfo): number =>
    upstreamBytes.headersSent + (runningTryBytes?.headersSent ?? 0),
};
