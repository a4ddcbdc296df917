// A response while a hook has it.

import type { HttpResponse } from '../../../../api/index.js';
import type { HeaderBlock, StreamControl } from '../../../sdk.js';
import { RESPONSE } from './direction.js';
import { ScriptMessage } from './message.js';

export class ScriptResponse extends ScriptMessage implements HttpResponse {
  readonly #isToHead: boolean;

  /** `isToHead`: it answers a HEAD request. */
  constructor(block: HeaderBlock, endStream: boolean, stream: StreamControl, isToHead: boolean) {
    super(block, endStream, stream, RESPONSE);
    this.#isToHead = isToHead;
  }

  get status(): number {
    return this.block.status;
  }

  set status(status: number) {
    this.block.setStatus(status);
  }

  protected override get mayHaveBody(): boolean {
    const { status } = this;
    return !this.#isToHead && status !== 204 && status !== 304;
  }
}
