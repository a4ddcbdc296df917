// The state-of-the-world protocol: each request names all that is wanted and the version that is in use, and answers the
// response before.

import { encodeStateRequest, type Response } from './discovery-messages.js';
import type { Protocol, Wanted } from './protocol.js';

interface Answer {
  readonly nonce: string;
  /** In use after it. */
  readonly version: string;
  readonly error: string | undefined;
}

export class StateOfTheWorld implements Protocol {
  holdsAnswers = false;
  readonly #typeUrl: string;
  #wanted: Wanted = { names: new Set(), isWildcard: false };
  /** The last version that was accepted. */
  #version = '';
  /** Responses that are still to be answered: each is, though others come meanwhile. */
  #answers: Answer[] = [];
  /** Of the last response that was answered. */
  #nonce = '';
  #isDue = false;
  /** Something was asked for on this stream: without names an empty list then means nothing, and not everything. */
  #hasAsked = false;

  constructor(typeUrl: string) {
    this.#typeUrl = typeUrl;
  }

  opened(): void {
    this.#nonce = '';
    this.#answers = [];
    this.#hasAsked = false;
    this.#isDue = true;
  }

  want(wanted: Wanted): void {
    const { names, isWildcard } = this.#wanted;
    const isSame =
      isWildcard === wanted.isWildcard &&
      names.size === wanted.names.size &&
      [...names].every((name) => wanted.names.has(name));
    this.#wanted = wanted;
    if (!isSame) this.#isDue = true;
  }

  answer(response: Response, error: string | undefined, isCurrent: boolean): void {
    if (error === undefined) this.#version = response.version;
    if (isCurrent) this.#answers.push({ nonce: response.nonce, version: this.#version, error });
  }

  get isDue(): boolean {
    if (this.#answers.length > 0 && !this.holdsAnswers) return true;
    return this.#isDue && (this.#hasAsked || this.#wanted.isWildcard || this.#wanted.names.size > 0);
  }

  request(node: Uint8Array | undefined): Uint8Array {
    const { names, isWildcard } = this.#wanted;
    const answer = this.holdsAnswers ? undefined : this.#answers.shift();
    this.#nonce = answer?.nonce ?? this.#nonce;
    const request = {
      node,
      version: answer?.version ?? this.#version,
      names: isWildcard && names.size > 0 ? ['*', ...names] : [...names],
      typeUrl: this.#typeUrl,
      nonce: this.#nonce,
      error: answer?.error,
    };
    this.#isDue = false;
    this.#hasAsked = true;
    return encodeStateRequest(request);
  }
}
