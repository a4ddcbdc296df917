// The head of a request that nobody sent, for the question where it would go.

import { headerKey } from '../../../common/text/header-names.js';
import type { Memory } from '../../../io/memory.js';
import { byteText } from '../../headers/byte-text.js';
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

/** Returns the head, which belongs to the caller. Throws a RangeError if it exceeds the memory. */
export function requestHead({ authority, headers, method, path }: DescribedRequest, memory: Memory): HeaderBlock {
  const head = headerBlocks(memory).take();
  head.setMethod(methodOf(method), method);
  if (path !== '') head.setPath(byteText(path));
  head.add(HOST, byteText(authority));
  for (const [name, value] of headers) head.add(headerKey(name.toLowerCase()), byteText(value));
  return head;
}

const HOST = headerKey('host');
