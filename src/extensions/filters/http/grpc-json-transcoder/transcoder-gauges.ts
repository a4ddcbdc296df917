// Bytes of bodies that the transcoder holds.

import { defineLayout, type Scope } from '../../../sdk.js';

export const TranscoderStats = defineLayout({
  transcoder_request_buffer_bytes: 'gauge',
  transcoder_response_buffer_bytes: 'gauge',
});

export class TranscoderGauges {
  readonly #scope: Scope;

  constructor(scope: Scope) {
    this.#scope = scope;
  }

  changeRequest(bytes: number): void {
    this.#change(TranscoderStats.at.transcoder_request_buffer_bytes, bytes);
  }

  changeResponse(bytes: number): void {
    this.#change(TranscoderStats.at.transcoder_response_buffer_bytes, bytes);
  }

  #change(slot: number, bytes: number): void {
    if (bytes > 0) this.#scope.add(slot, bytes);
    else this.#scope.subtract(slot, -bytes);
  }
}
