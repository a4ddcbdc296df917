// The delta protocol: requests name what is wanted in addition and what is not any more; each response is answered by a
// request of its own, and a new stream begins with the versions that are in use.

import { encodeDeltaRequest, type Response } from './discovery-messages.js';
import type { Protocol, VersionsInUse, Wanted } from './protocol.js';

interface Answer {
  readonly nonce: string;
  readonly error: string | undefined;
}

export class Delta implements Protocol {
  holdsAnswers = false;
  readonly #typeUrl: string;
  /** With '*' when all are wanted. */
  #wanted: ReadonlySet<string> = new Set();
  /** What the server knows to be wanted. */
  #told = new Set<string>();
  #answers: Answer[] = [];
  #hasAsked = false;

  constructor(typeUrl: string) {
    this.#typeUrl = typeUrl;
  }

  opened(): void {
    this.#told = new Set();
    this.#answers = [];
    this.#hasAsked = false;
  }

  want({ names, isWildcard }: Wanted): void {
    const wanted = new Set(names);
    if (isWildcard) wanted.add(WILDCARD);
    this.#wanted = wanted;
  }

  answer({ nonce }: Response, error: string | undefined, isCurrent: boolean): void {
    if (isCurrent) this.#answers.push({ nonce, error });
  }

  get isDue(): boolean {
    if (this.#answers.length > 0 && !this.holdsAnswers) return true;
    if (!this.#hasAsked && this.#wanted.size === 0) return false;
    return !this.#hasAsked || !isSubset(this.#wanted, this.#told) || !isSubset(this.#told, this.#wanted);
  }

  request(node: Uint8Array | undefined, inUse: VersionsInUse): Uint8Array {
    const isFirst = !this.#hasAsked;
    const subscribe = [...this.#wanted].filter((name) => !this.#told.has(name));
    const unsubscribe = [...this.#told].filter((name) => !this.#wanted.has(name));
    const answer = this.holdsAnswers ? undefined : this.#answers.shift();
    this.#hasAsked = true;
    this.#told = new Set(this.#wanted);
    // A first request without names asks for everything: servers that know no '*' understand it too.
    const isAll = isFirst && subscribe.length === 1 && subscribe[0] === WILDCARD;
    return encodeDeltaRequest({
      node,
      typeUrl: this.#typeUrl,
      subscribe: isAll ? [] : subscribe,
      unsubscribe,
      initialVersions: isFirst ? inUse : [],
      nonce: answer?.nonce ?? '',
      error: answer?.error,
    });
  }
}

const WILDCARD = '*';

function isSubset(inner: ReadonlySet<string>, outer: ReadonlySet<string>): boolean {
  for (const name of inner) if (!outer.has(name)) return false;
  return true;
}
