// Delta, or incremental xDS: requests name what is wanted in addition and what is not any more; each response is answered by a
// request of its own. Responses have what is new, and the names of what is gone. A new stream begins with the versions in use.

import { escaped } from '../../../config/text/problem.js';
import { hidesNames } from '../../resource.js';
import type { ReadResources } from '../../resource-reader.js';
import type { KnownResources } from '../known-resources.js';
import { typeUrlOf } from '../services.js';
import { encodeDeltaRequest, hasBody, type Response } from './discovery-messages.js';
import type { News, Protocol, Wanted } from './protocol.js';

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
  /** No response has come on this stream. */
  #isFirstDue = false;

  constructor(typeUrl: string) {
    this.#typeUrl = typeUrl;
  }

  opened(): void {
    this.#told = new Set();
    this.#answers = [];
    this.#hasAsked = false;
    this.#isFirstDue = true;
  }

  want({ names, isWildcard }: Wanted): void {
    const wanted = new Set(names);
    if (isWildcard) wanted.add(WILDCARD);
    this.#wanted = wanted;
  }

  get isWildcard(): boolean {
    return this.#wanted.has(WILDCARD);
  }

  get isDue(): boolean {
    if (this.#answers.length > 0 && !this.holdsAnswers) return true;
    if (!this.#hasAsked && this.#wanted.size === 0) return false;
    return !this.#hasAsked || !isSubset(this.#wanted, this.#told) || !isSubset(this.#told, this.#wanted);
  }

  request(node: Uint8Array | undefined, known: KnownResources): Uint8Array {
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

  news(response: Response, read: ReadResources, known: KnownResources, isCurrent: boolean): News {
    const { resources, refused } = read;
    const forgotten = isCurrent ? this.#forgotten(response, read, known) : [];
    return { resources, refused, removed: [...response.removed, ...this.#absent(response, known), ...forgotten] };
  }

  /** Nothing is gone unless its name says so. */
  isComplete(): boolean {
    return false;
  }

  answer({ nonce }: Response, error: string | undefined, isCurrent: boolean): void {
    if (isCurrent) this.#answers.push({ nonce, error });
  }

  /** Virtual hosts that were asked for and do not exist: servers may send them without a body, by any of their names. */
  #absent({ resources }: Response, known: KnownResources): string[] {
    if (this.#typeUrl !== VIRTUAL_HOST) return [];
    const absent = resources.filter((each) => !hasBody(each) && !known.isInUse(each.name));
    return absent.flatMap(({ name, aliases }) => [name, ...aliases]);
  }

  /**
   * The first response of a stream says what there is beside the versions in use. What was refused before, and a server that
   * tells everything does not tell again, is gone: the server does not know that it has to say so.
   */
  #forgotten({ removed }: Response, { resources, refused }: ReadResources, known: KnownResources): string[] {
    if (!this.#isFirstDue) return [];
    this.#isFirstDue = false;
    if (!this.isWildcard || hidesNames(refused)) return [];
    const named = new Set([...removed, ...[...resources, ...refused].map(({ name }) => name)]);
    return [...known.unused()].filter((name) => !named.has(name));
  }
}

const WILDCARD = '*';
const VIRTUAL_HOST = typeUrlOf('virtual-host');

function isSubset(inner: ReadonlySet<string>, outer: ReadonlySet<string>): boolean {
  for (const name of inner) if (!outer.has(name)) return false;
  return true;
}
