// Checks a configuration by building what a worker would build of it: mistakes are reported in their places before anything starts.

import { BatonError, Mistakes, messageOf } from '../common/errors/errors.js';
import type { Report } from '../config/catalog/extension.js';

/** Calls `build`, and reports what it throws at the place that the error names within `base` (a path, or ''). */
export function reportMistakes(report: Report, base: string, build: () => unknown): void {
  try {
    build();
  } catch (error) {
    reportMistake(report, base, error);
  }
}

/** Reports what was thrown at such a place. */
export function reportMistake(report: Report, base: string, thrown: unknown): void {
  for (const error of Mistakes.of(thrown)) reportOne(report, base, error);
}

function reportOne(report: Report, base: string, error: unknown): void {
  const { where, remedy } = error instanceof BatonError ? error : { where: undefined, remedy: undefined };
  const path = [base, where ?? ''].filter((part) => part !== '').join('.');
  report(path, remedy === undefined ? messageOf(error) : `${messageOf(error)}; ${remedy}`);
}
