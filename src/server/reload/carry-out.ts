// Changes that happen all together or not at all.

import { messageOf } from '../../common/errors/errors.js';

/** One of them, in two steps: what can fail is done first, and changes nothing. */
export interface Change {
  /** Nobody sees anything of it before commit(). */
  prepare(): void | Promise<void>;
  /** Called after all others have been prepared. What it throws undoes everything. */
  commit(): void | Promise<void>;
  /** Gives back what prepare() has got; called when it has failed too, and never after commit(). */
  discard(): void | Promise<void>;
  /** Everything is as it was before commit(), which may have failed half-way. */
  undo(): void | Promise<void>;
}

/** The first failure, and what went wrong when things were put back as they were. */
export class ChangeFailure extends Error {
  readonly isUndone: boolean;

  constructor(cause: unknown, failures: readonly unknown[]) {
    const rest = failures.length === 0 ? '' : `; and it could not be undone: ${failures.map(messageOf).join('; ')}`;
    super(`${messageOf(cause)}${rest}`, { cause });
    this.name = 'ChangeFailure';
    this.isUndone = failures.length === 0;
  }
}

/** Carries out all changes in their order. Rejects with a ChangeFailure, and then everything is as it was. */
export async function carryOut(changes: readonly Change[]): Promise<void> {
  let prepared = 0;
  let committed = 0;
  try {
    for (const change of changes) {
      prepared++;
      await change.prepare();
    }
    for (const change of changes) {
      committed++;
      await change.commit();
    }
  } catch (cause) {
    const failures: unknown[] = [];
    for (let index = prepared - 1; index >= 0; index--) {
      const change = changes[index]!;
      try {
        await (index < committed ? change.undo() : change.discard());
      } catch (error) {
        failures.push(error);
      }
    }
    throw new ChangeFailure(cause, failures);
  }
}
