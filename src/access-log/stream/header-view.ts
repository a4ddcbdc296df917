// A head as access log formats and filters read it. HeaderBlock implements this interface.

import type { HeaderKey } from '../../common/text/header-names.js';
import type { HeadKind } from '../../common/text/joined-names.js';
import type { Memory } from '../../io/memory.js';

/** The memory that contains a head, and scratch memory for texts that are compared with it. */
export type TextMemory = Pick<Memory, 'bytes' | 'view' | 'text' | 'scratch' | 'withdrawScratch' | 'write'>;

export interface HeaderView {
  readonly kind: HeadKind;
  readonly memory: TextMemory;
  /** Ranges in a request; otherwise empty. */
  readonly methodStart: number;
  readonly methodEnd: number;
  readonly pathStart: number;
  readonly pathEnd: number;
  /** In a request: from its head or from a preceding proxy; otherwise ''. */
  readonly scheme: '' | 'http' | 'https';
  /** In a response; otherwise 0. */
  readonly status: number;
  /** Number of fields with removed ones. */
  readonly size: number;
  isRemoved(index: number): boolean;
  /** Returns the name of a field in lower case. */
  name(index: number): string;
  /** Bytes of all names and values. */
  readonly fieldBytes: number;
  /** Returns the index of the first field with this name at or after `from`, or -1. */
  find(key: HeaderKey, from?: number): number;
  /** Returns the index of the next field with the name of the field at `index`, or -1. */
  findNext(key: HeaderKey, index: number): number;
  /**
   * Returns the index of the value for this name, or -1: the first field, or all fields joined if they form one value
   * (HeaderKey.joinedIn). A joined value is in scratch memory, is not a field of the head, and is valid until the head changes or
   * withdrawValue().
   */
  findValue(key: HeaderKey): number;
  /** Releases the memory of a joined value, which must be the last allocation of scratch(). */
  withdrawValue(index: number): void;
  valueStart(index: number): number;
  valueEnd(index: number): number;
  /** Returns the text at findValue(), one character per byte; undefined: there is none. */
  get(key: HeaderKey): string | undefined;
}
