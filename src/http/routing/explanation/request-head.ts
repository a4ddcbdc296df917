// The head of a request that nobody sent, for the question where it would go.

import { BatonError, messageOf } from '../../../common/errors/errors.js';
import { byteText } from '../../../common/text/byte-text.js';
import { headerKey } from '../../../common/text/header-names.js';
import { Memory } from '../../../io/memory.js';
import { type HeaderBlock, headerBlocks, methodOf } from '../../headers/header-block.js';

/** A request as a person describes it; texts are UTF-8. */
export interface DescribedRequest {
  readonly method: string;
  readonly authority: string;
  /** With its query; '' for CONNECT. */
  readonly path: string;
  /** In this order; a name may occur several times. */
  readonly headers: readonly (readonly [name: string, value: string])[];
}

/** Nothing is kept beyond a turn; the arena is for what does not fit. */
const MEMORY = { receiveBytes: 0, scratchBytes: 1024 * 1024, arenaBytes: 256 * 1024 };

/** Returns memory for the head of one request and the changes to it. Its pages are used when they are touched. */
export function memoryOfRequest(): Memory {
  return new Memory(MEMORY);
}

/**
 * Returns the head, which belongs to the caller.
 * @throws BatonError OPTION_INVALID if no request can have one of the texts; RangeError if it exceeds the memory
 */
export function requestHead({ authority, headers, method, path }: DescribedRequest, memory: Memory): HeaderBlock {
  const head = headerBlocks(memory).take();
  describing(() => {
    head.setMethod(methodOf(method), method);
    if (path !== '') head.setPath(byteText(path));
    head.add(HOST, byteText(authority));
  });
  addHeaders(head, headers);
  return head;
}

/** Adds headers. @throws like requestHead() */
export function addHeaders(head: HeaderBlock, headers: DescribedRequest['headers']): void {
  describing(() => {
    for (const [name, value] of headers) head.add(headerKey(name.toLowerCase()), byteText(value));
  });
}

const HOST = headerKey('host');

/** A head refuses invalid texts as mistakes of a program. */
function describing(write: () => void): void {
  try {
    write();
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new BatonError('OPTION_INVALID', messageOf(error), { cause: error });
  }
}
