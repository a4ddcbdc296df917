// The client side of xDS for one resource type on a stream: composes requests, interprets responses, and acknowledges or rejects
// them. This is the common interface of the two protocols, state of the world and delta. No I/O.
// https://www.envoyproxy.io/docs/envoy/latest/api-docs/xds_protocol

import type { Update } from '../../resource.js';
import type { ReadResources } from '../../resource-reader.js';
import type { KnownResources } from '../known-resources.js';
import type { Response } from './discovery-messages.js';

/** The subscribed names of a resource type. */
export interface SubscribedNames {
  readonly names: ReadonlySet<string>;
  /** All resources are subscribed. */
  readonly isWildcard: boolean;
  /** Names that were not subscribed for a while since the last call: the server must answer them again. */
  readonly renewed: ReadonlySet<string>;
}

/** The changes of a response, or a watcher's part of them. */
export type ResourceChanges = Pick<Update, 'resources' | 'refused' | 'removed'>;

export interface Protocol {
  /** A refused update counts as one more attempt in the stats, as in Envoy. */
  readonly countsRefusals: boolean;
  /** ACKs and NACKs are held back. Subscription changes are still sent. */
  holdsAnswers: boolean;
  /** Called when a new stream is open. All names must be subscribed again. */
  opened(): void;
  /** Replaces the subscribed names. Retains the object. */
  subscribe(subscribed: SubscribedNames): void;
  /** The server sends all resources. */
  readonly isWildcard: boolean;
  /** A request is pending. */
  readonly isDue: boolean;
  /** Returns the pending request, encoded. */
  request(node: Uint8Array | undefined, known: KnownResources): Uint8Array;
  /** Returns an error text if the response contradicts itself about a name, else undefined. */
  contradictionIn(response: Response): string | undefined;
  /** Returns the changes of a read response. `known` is the state before it; not `isCurrent`: its stream has ended. */
  changes(response: Response, read: ReadResources, known: KnownResources, isCurrent: boolean): ResourceChanges;
  /** Returns whether a response contains all resources of the subscription, so that missing ones are removed. */
  isComplete(isWildcard: boolean): boolean;
  /** Queues the ACK, or with `error` the NACK, of a response; not `isCurrent`: its stream has ended. */
  answer(response: Response, error: string | undefined, isCurrent: boolean): void;
}
