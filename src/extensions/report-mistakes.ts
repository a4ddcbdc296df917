// Validates a configuration by building what a worker would build from it, so that mistakes are reported at their places at load
// time.

import { BatonError, Mistakes, messageOf } from '../common/errors/errors.js';
import type { Report } from '../config/catalog/extension.js';

/** Calls `build`, and reports what it throws. The place is `base` (a path or '') followed by the path in the error. */
export function reportMistakes(report: Report, base: string, build: () => unknown): void {
  try {
    build();
  } catch (error) {
    reportMistake(report, base, error);
  }
}

/** Reports a thrown value as reportMistakes() does. */
export function reportMistake(report: Report, base: string, thrown: unknown): void {
  for (const error of Mistakes.of(thrown)) reportOne(report, base, error);
}

function reportOne(report: Report, base: string, error: unknown): void {
  const { where, remedy } = error instanceof BatonError ? error : { where: undefined, remedy: undefined };
  const path = [base, where ?? ''].filter((part) => part !== '').join('.');
  report(path, remedy === undefined ? messageOf(error) : `${messageOf(error)}; ${remedy}`);
}
