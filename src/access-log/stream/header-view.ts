// What a formatter reads of a message's head: HeaderBlock has this shape.

import type { HeaderKey } from '../../common/text/header-names.js';

export interface HeaderView {
  readonly memory: { readonly bytes: Uint8Array };
  /** Of a request; empty ranges elsewhere. */
  readonly methodStart: number;
  readonly methodEnd: number;
  readonly pathStart: number;
  readonly pathEnd: number;
  /** Of a response; 0 elsewhere. */
  readonly status: number;
  /** Index of the first field of this name, or -1. */
  find(key: HeaderKey): number;
  valueStart(index: number): number;
  valueEnd(index: number): number;
  /** The first value of this name, one character a byte; undefined: there is none. */
  get(key: HeaderKey): string | undefined;
}
