// Checks one message in a thread that ends afterwards. This file imports nothing of what the thread loads.

import { askThread } from './ask-thread.js';

/** A message in canonical form, or everything that is wrong with it. */
export type CheckedMessage =
  | { readonly ok: true; readonly message: unknown }
  | { readonly ok: false; readonly reason: string };

/** What the thread is asked to do; plain data. */
export interface MessageToCheck {
  /** Full name of the message. */
  readonly name: string;
  /** YAML or JSON. */
  readonly text: string;
}

/** A text comes from a client: it may not take more of the heap than this. */
const MAX_HEAP_MB = 256;

/** @param entry file of the thread; it calls runMessageThread */
export function checkInThread(entry: URL, data: MessageToCheck): Promise<CheckedMessage> {
  return askThread<CheckedMessage>({
    entry,
    name: 'message-check',
    data,
    limits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
    tooLarge: () => ({ ok: false, reason: `the body needs more than ${MAX_HEAP_MB} MB of memory to read` }),
  });
}
