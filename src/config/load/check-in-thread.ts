// Checks one message in a thread that ends afterwards. This file does not import what the thread loads.

import { runInThread } from './run-in-thread.js';

/** A message in canonical form, or all its problems. */
export type CheckedMessage =
  | { readonly ok: true; readonly message: unknown }
  | { readonly ok: false; readonly reason: string };

/** The task of the thread; plain data. */
export interface MessageToCheck {
  /** Full name of the message. */
  readonly name: string;
  /** YAML or JSON. */
  readonly text: string;
}

/** Heap limit of the thread, because the text comes from a client. */
const MAX_HEAP_MB = 256;

/** @param entry file of the thread, which calls runMessageThread() */
export function checkInThread(entry: URL, data: MessageToCheck): Promise<CheckedMessage> {
  return runInThread<CheckedMessage>({
    entry,
    name: 'message-check',
    data,
    limits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
    tooLarge: () => ({ ok: false, reason: `the body needs more than ${MAX_HEAP_MB} MB of memory to read` }),
  });
}
