// The compressors that handle a request. They agree on one coding for its response.

import type { FilterState, StreamInfo } from '../../../sdk.js';
import { type ChosenEncoding, chooseEncoding, type OfferedEncoding } from './accept-encoding.js';
import type { ContentTypes } from './rules.js';

interface Compressor extends OfferedEncoding {
  readonly types: ContentTypes;
}

export class ChainEncodings {
  readonly #compressors: Compressor[] = [];
  #chosen: ChosenEncoding | undefined;

  /** Returns the encodings of a stream; there is one for each request. */
  static of(info: StreamInfo): ChainEncodings {
    const state = info.ownFilterState();
    let encodings = byRequest.get(state);
    if (encodings === undefined) byRequest.set(state, (encodings = new ChainEncodings()));
    return encodings;
  }

  /** Called in the order of the chain. Of several compressors with the same coding the first counts. */
  add(compressor: Compressor): void {
    this.#compressors.push(compressor);
  }

  /** The first compressor that asks decides for all. */
  choose(acceptEncoding: string, contentType: string | undefined): ChosenEncoding {
    this.#chosen ??= chooseEncoding(
      acceptEncoding,
      this.#compressors.filter(({ types }) => types.allow(contentType)),
    );
    return this.#chosen;
  }
}

/** Filter state is created for each request, unlike streams. */
const byRequest = new WeakMap<FilterState, ChainEncodings>();
