// What a formatter or a filter of access logs reads of a message's head: HeaderBlock has this shape.

import type { HeaderKey } from '../../common/text/header-names.js';
import type { HeadKind } from '../../common/text/joined-names.js';
import type { Memory } from '../../io/memory.js';

/** The bytes that a head lies in, and room for texts that are compared with them. */
export type TextMemory = Pick<Memory, 'bytes' | 'view' | 'text' | 'scratch' | 'withdrawScratch' | 'write'>;

export interface HeaderView {
  readonly kind: HeadKind;
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
  /** Index of the next field with the name of the field at `index`, or -1. */
  findNext(key: HeaderKey, index: number): number;
  /**
   * Index of the value of this name, or -1: of its first field, or of all its fields joined where they are one value (HeaderKey.joinedIn).
   * What is joined lies in scratch, is no field of the head, and is there until the head changes or withdrawValue().
   */
  findValue(key: HeaderKey): number;
  /** Gives back the room of a joined value that scratch() has given last. */
  withdrawValue(index: number): void;
  valueStart(index: number): number;
  valueEnd(index: number): number;
  /** The text at findValue(), one character a byte; undefined: there is none. */
  get(key: HeaderKey): string | undefined;
}
