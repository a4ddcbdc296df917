// State of the world (SotW): each request contains all subscribed names and the version in use, and answers the previous
// response. Each response contains all changes, and for some types all resources.

import type { ReadResources } from '../../resource-reader.js';
import type { KnownResources } from '../known-resources.js';
import { typeUrlOf } from '../services.js';
import { encodeStateRequest, hasBody, type Response } from './discovery-messages.js';
import type { Protocol, ResourceChanges, SubscribedNames } from './protocol.js';

interface Answer {
  readonly nonce: string;
  /** Version in use after the response. */
  readonly version: string;
  readonly error: string | undefined;
}

export class StateOfTheWorld implements Protocol {
  readonly countsRefusals = false;
  holdsAnswers = false;
  readonly #typeUrl: string;
  #subscribed: SubscribedNames = NOTHING;
  /** The last accepted version. */
  #version = '';
  /** Pending answers: each response gets one, even if others arrive meanwhile. */
  #answers: Answer[] = [];
  /** Nonce of the last answered response. */
  #nonce = '';
  /** The subscription has changed since the last request. */
  #isDue = false;
  /** A request was sent on this stream. After that, an empty list of names means none instead of all. */
  #hasAsked = false;

  constructor(typeUrl: string) {
    this.#typeUrl = typeUrl;
  }

  opened(): void {
    this.#subscribed = NOTHING;
    this.#nonce = '';
    this.#answers = [];
    this.#hasAsked = false;
    this.#isDue = true;
  }

  subscribe(subscribed: SubscribedNames): void {
    const { names, isWildcard } = this.#subscribed;
    // A wildcard request and one without subscriptions both have no names: the server continues to send everything.
    if (isWildcard && subscribed.names.size === 0) subscribed = { ...subscribed, isWildcard };
    const isSame =
      isWildcard === subscribed.isWildcard &&
      names.size === subscribed.names.size &&
      [...names].every((name) => subscribed.names.has(name));
    this.#subscribed = subscribed;
    if (!isSame) this.#isDue = true;
  }

  get isWildcard(): boolean {
    return this.#subscribed.isWildcard;
  }

  get isDue(): boolean {
    if (this.#answers.length > 0 && !this.holdsAnswers) return true;
    return this.#isDue && (this.#hasAsked || this.#subscribed.isWildcard || this.#subscribed.names.size > 0);
  }

  request(node: Uint8Array | undefined): Uint8Array {
    const { names, isWildcard } = this.#subscribed;
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
    // The last occurrence of a name is used.
  }

  /** Adds the resources of heartbeats: without them, they would count as removed in complete responses. */
  changes(response: Response, { resources, refused }: ReadResources, known: KnownResources): ResourceChanges {
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

const NOTHING: SubscribedNames = { names: new Set(), isWildcard: false, renewed: new Set() };

/** Types whose responses are complete. For other types, missing resources are unchanged. */
const COMPLETE_TYPES: ReadonlySet<string> = new Set([typeUrlOf('listener'), typeUrlOf('cluster')]);
