// Applies a list of changes completely or not at all.

import { messageOf } from '../../common/errors/errors.js';

/** A change in two steps. The first does everything that can fail, and changes nothing. */
export interface Change {
  /** Has no visible effect. */
  prepare(): void | Promise<void>;
  /** Called after all changes are prepared. An exception undoes everything. */
  commit(): void | Promise<void>;
  /** Releases what prepare() has acquired. Called after a failed prepare() too, never after commit(). */
  discard(): void | Promise<void>;
  /** Restores the state before commit(), which may have failed half-way. */
  undo(): void | Promise<void>;
}

/** The first failure, and the failures of the rollback. */
export class ChangeFailure extends Error {
  readonly isUndone: boolean;

  constructor(cause: unknown, failures: readonly unknown[]) {
    const rest = failures.length === 0 ? '' : `; and it could not be undone: ${failures.map(messageOf).join('; ')}`;
    super(`${messageOf(cause)}${rest}`, { cause });
    this.name = 'ChangeFailure';
    this.isUndone = failures.length === 0;
  }
}

/** Applies all changes in order. Rejects with a ChangeFailure after everything was undone. */
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
