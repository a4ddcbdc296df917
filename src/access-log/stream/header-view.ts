// What a formatter or a filter of access logs reads of a message's head: HeaderBlock has this shape.

import type { HeaderKey } from '../../common/text/header-names.js';
import type { Memory } from '../../io/memory.js';

/** The bytes that a head lies in, and room for texts that are compared with them. */
export type TextMemory = Pick<Memory, 'bytes' | 'view' | 'text' | 'scratch' | 'withdrawScratch' | 'write'>;

export interface HeaderView {
  readonly memory: TextMemory;
  /** Of a request; empty ranges elsewhere. */
  readonly methodStart: number;
  readonly methodEnd: number;
  readonly pathStart: number;
  readonly pathEnd: number;
  /** Of a request, where its head or its client's proxy tells; '' elsewhere. */
  readonly scheme: '' | 'http' | 'https';
  /** Of a response; 0 elsewhere. */
  readonly status: number;
  /** Index of the first field at or behind `from` with this name, or -1. */
  find(key: HeaderKey, from?: number): number;
  valueStart(index: number): number;
  valueEnd(index: number): number;
  /** The first value of this name, one character a byte; undefined: there is none. */
  get(key: HeaderKey): string | undefined;
}
