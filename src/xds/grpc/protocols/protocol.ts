// What a client says of one kind of resources on a stream, in one of the two protocols: which request is next, and how the
// last response is answered. No I/O.

import type { Update } from '../../resource.js';
import type { Response } from './discovery-messages.js';

/** What is wanted of a kind of resources. */
export interface Wanted {
  readonly names: ReadonlySet<string>;
  /** All that there are. */
  readonly isWildcard: boolean;
}

/** What a response says, or the part of it that is of interest to a watcher. */
export type News = Pick<Update, 'resources' | 'refused' | 'removed'>;

/** The version of each resource in use. */
export type VersionsInUse = Iterable<readonly [name: string, version: string]>;

export interface Protocol {
  /** Answers wait, and questions do not. */
  holdsAnswers: boolean;
  /** There is a new stream, on which nothing was said yet. */
  opened(): void;
  /** This is wanted from now on; it keeps the object. */
  want(wanted: Wanted): void;
  /** The response is accepted, or refused for that reason; not `isCurrent`: on a stream that is gone. */
  answer(response: Response, error: string | undefined, isCurrent: boolean): void;
  /** There is something to say. */
  readonly isDue: boolean;
  /** It, encoded. `inUse` is read for the first request of a stream only. */
  request(node: Uint8Array | undefined, inUse: VersionsInUse): Uint8Array;
}
