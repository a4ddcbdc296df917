// State of the world (SotW): each request names all that is wanted and the version that is in use, and answers the response
// before. Each response has all that is new, and in some cases all that there is.

import type { ReadResources } from '../../resource-reader.js';
import type { KnownResources } from '../known-resources.js';
import { typeUrlOf } from '../services.js';
import { encodeStateRequest, hasBody, type Response } from './discovery-messages.js';
import type { News, Protocol, Wanted } from './protocol.js';

interface Answer {
  readonly nonce: string;
  /** In use after it. */
  readonly version: string;
  readonly error: string | undefined;
}

export class StateOfTheWorld implements Protocol {
  holdsAnswers = false;
  readonly #typeUrl: string;
  #wanted: Wanted = NOTHING;
  /** The last version that was accepted. */
  #version = '';
  /** Responses that are still to be answered: each is, though others come meanwhile. */
  #answers: Answer[] = [];
  /** Of the last response that was answered. */
  #nonce = '';
  /** What is wanted has changed since the last request. */
  #isDue = false;
  /** Something was asked for on this stream: without names an empty list then means nothing, and not everything. */
  #hasAsked = false;

  constructor(typeUrl: string) {
    this.#typeUrl = typeUrl;
  }

  opened(): void {
    this.#wanted = NOTHING;
    this.#nonce = '';
    this.#answers = [];
    this.#hasAsked = false;
    this.#isDue = true;
  }

  want(wanted: Wanted): void {
    const { names, isWildcard } = this.#wanted;
    // A wildcard names nothing, and neither does a request when nothing is wanted: the server goes on to tell everything.
    if (isWildcard && wanted.names.size === 0) wanted = { ...wanted, isWildcard };
    const isSame =
      isWildcard === wanted.isWildcard &&
      names.size === wanted.names.size &&
      [...names].every((name) => wanted.names.has(name));
    this.#wanted = wanted;
    if (!isSame) this.#isDue = true;
  }

  get isWildcard(): boolean {
    return this.#wanted.isWildcard;
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

  contradictionIn(): undefined {
    // The last one of a name counts.
  }

  /** Where what is not named is gone, heartbeats stand for their resources. */
  news(response: Response, { resources, refused }: ReadResources, known: KnownResources): News {
    const living = response.resources.flatMap((each) => (hasBody(each) ? [] : (known.last(each.name) ?? [])));
    return { resources: [...living, ...resources], refused, removed: [] };
  }

  isComplete(isWildcard: boolean): boolean {
    return isWildcard || COMPLETE_TYPES.has(this.#typeUrl);
  }

  answer(response: Response, error: string | undefined, isCurrent: boolean): void {
    if (error === undefined) this.#version = response.version;
    if (isCurrent) this.#answers.push({ nonce: response.nonce, version: this.#version, error });
  }
}

const NOTHING: Wanted = { names: new Set(), isWildcard: false };

/** What a response does not have of others has not changed. */
const COMPLETE_TYPES: ReadonlySet<string> = new Set([typeUrlOf('listener'), typeUrlOf('cluster')]);
