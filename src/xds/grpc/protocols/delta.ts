// Delta (incremental) xDS: requests contain newly subscribed and unsubscribed names, and each response is answered by its own
// request. Responses contain changes, and the names of removed resources. A new stream begins with the versions in use.

import { escaped } from '../../../config/text/problem.js';
import { hasUnnamed } from '../../resource.js';
import type { ReadResources } from '../../resource-reader.js';
import type { KnownResources } from '../known-resources.js';
import { typeUrlOf } from '../services.js';
import { encodeDeltaRequest, hasBody, type Response } from './discovery-messages.js';
import type { Protocol, ResourceChanges, SubscribedNames } from './protocol.js';

interface Answer {
  readonly nonce: string;
  readonly error: string | undefined;
}

export class Delta implements Protocol {
  readonly countsRefusals = true;
  holdsAnswers = false;
  readonly #typeUrl: string;
  /** Contains '*' for a wildcard. */
  #subscribed: ReadonlySet<string> = new Set();
  /** The names that have been sent to the server, and subscribed ever since. */
  #requested = new Set<string>();
  /** The other names that the server has. It answers those that are subscribed again. */
  #lapsed = new Set<string>();
  #answers: Answer[] = [];
  #hasAsked = false;
  /** No response has arrived on this stream. */
  #isFirstDue = false;

  constructor(typeUrl: string) {
    this.#typeUrl = typeUrl;
  }

  opened(): void {
    this.#requested = new Set();
    this.#lapsed = new Set();
    this.#answers = [];
    this.#hasAsked = false;
    this.#isFirstDue = true;
  }

  subscribe({ names, isWildcard, renewed }: SubscribedNames): void {
    const subscribed = new Set(names);
    if (isWildcard) subscribed.add(WILDCARD);
    this.#subscribed = subscribed;
    for (const name of this.#requested) {
      if (!subscribed.has(name) || renewed.has(name)) {
        this.#requested.delete(name);
        this.#lapsed.add(name);
      }
    }
  }

  get isWildcard(): boolean {
    return this.#subscribed.has(WILDCARD);
  }

  get isDue(): boolean {
    if (this.#answers.length > 0 && !this.holdsAnswers) return true;
    if (!this.#hasAsked && this.#subscribed.size === 0) return false;
    return !this.#hasAsked || this.#lapsed.size > 0 || this.#subscribed.size !== this.#requested.size;
  }

  request(node: Uint8Array | undefined, known: KnownResources): Uint8Array {
    const isFirst = !this.#hasAsked;
    const subscribe = [...this.#subscribed].filter((name) => !this.#requested.has(name));
    const unsubscribe = [...this.#lapsed].filter((name) => !this.#subscribed.has(name));
    const answer = this.holdsAnswers ? undefined : this.#answers.shift();
    this.#hasAsked = true;
    this.#requested = new Set(this.#subscribed);
    this.#lapsed.clear();
    // A first request without names subscribes to everything, also with servers that do not support '*'.
    const isAll = isFirst && subscribe.length === 1 && subscribe[0] === WILDCARD;
    return encodeDeltaRequest({
      node,
      typeUrl: this.#typeUrl,
      subscribe: isAll ? [] : subscribe,
      unsubscribe,
      initialVersions: isFirst ? [...known.inUse].map(({ name, version }) => [name, version] as const) : [],
      nonce: answer?.nonce ?? '',
      error: answer?.error,
    });
  }

  contradictionIn({ removed, resources }: Response): string | undefined {
    const names = new Set<string>();
    for (const { name } of resources) {
      if (names.has(name)) return `duplicate name ${escaped(name)} found among added/updated resources`;
      if (name !== '') names.add(name);
    }
    const both = removed.find((name) => names.has(name));
    return both === undefined
      ? undefined
      : `duplicate name ${escaped(both)} found in the union of added+removed resources`;
  }

  changes(response: Response, read: ReadResources, known: KnownResources, isCurrent: boolean): ResourceChanges {
    const { resources, refused } = read;
    const forgotten = isCurrent ? this.#forgotten(response, read, known) : [];
    return { resources, refused, removed: [...response.removed, ...this.#absent(response, known), ...forgotten] };
  }

  /** Only named resources are removed. */
  isComplete(): boolean {
    return false;
  }

  answer({ nonce }: Response, error: string | undefined, isCurrent: boolean): void {
    if (isCurrent) this.#answers.push({ nonce, error });
  }

  /**
   * Returns the names of requested virtual hosts that do not exist: servers may send them without a body, by any of their names.
   */
  #absent({ resources }: Response, known: KnownResources): string[] {
    if (this.#typeUrl !== VIRTUAL_HOST) return [];
    const absent = resources.filter((each) => !hasBody(each) && !known.isInUse(each.name));
    return absent.flatMap(({ name, aliases }) => [name, ...aliases]);
  }

  /**
   * Returns refused resources that the first response of a stream does not contain. It lists all resources besides the versions
   * in use, and refused ones are not among the versions sent to the server, so it cannot report their removal.
   */
  #forgotten({ removed }: Response, { resources, refused }: ReadResources, known: KnownResources): string[] {
    if (!this.#isFirstDue) return [];
    this.#isFirstDue = false;
    if (!this.isWildcard || hasUnnamed(refused)) return [];
    const named = new Set([...removed, ...[...resources, ...refused].map(({ name }) => name)]);
    return [...known.unused()].filter((name) => !named.has(name));
  }
}

const WILDCARD = '*';
const VIRTUAL_HOST = typeUrlOf('virtual-host');
