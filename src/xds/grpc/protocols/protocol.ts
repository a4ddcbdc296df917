// The client's side of xDS for one kind of resources on a stream: what is asked for, what a response means, how it is answered.
// There are two protocols, state of the world and delta; what they have in common is here. No I/O.
// https://www.envoyproxy.io/docs/envoy/latest/api-docs/xds_protocol

import type { Update } from '../../resource.js';
import type { ReadResources } from '../../resource-reader.js';
import type { KnownResources } from '../known-resources.js';
import type { Response } from './discovery-messages.js';

/** What is wanted of a kind of resources. */
export interface Wanted {
  readonly names: ReadonlySet<string>;
  /** All that there are. */
  readonly isWildcard: boolean;
}

/** What a response says, or the part of it that is of interest to a watcher. */
export type News = Pick<Update, 'resources' | 'refused' | 'removed'>;

export interface Protocol {
  /** Answers wait, and questions do not. */
  holdsAnswers: boolean;
  /** There is a new stream, on which nothing was said yet. What is wanted is told anew. */
  opened(): void;
  /** This is wanted from now on; it keeps the object. */
  want(wanted: Wanted): void;
  /** The server tells of all resources. */
  readonly isWildcard: boolean;
  /** There is something to say. */
  readonly isDue: boolean;
  /** It, encoded. */
  request(node: Uint8Array | undefined, known: KnownResources): Uint8Array;
  /** What a response says of a name twice, and differently, so that nobody knows which of the two is meant; mostly undefined. */
  contradictionIn(response: Response): string | undefined;
  /** What a response that was read says. `known` is from before it; not `isCurrent`: its stream is gone. */
  news(response: Response, read: ReadResources, known: KnownResources, isCurrent: boolean): News;
  /** Responses have everything that there is of what is asked for, by wildcard or by names: what one does not have is gone. */
  isComplete(isWildcard: boolean): boolean;
  /** The response is accepted (ACK), or refused for that reason (NACK); not `isCurrent`: its stream is gone. */
  answer(response: Response, error: string | undefined, isCurrent: boolean): void;
}
