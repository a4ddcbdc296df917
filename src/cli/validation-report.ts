// The answer of --mode validate: a line, or with --format json an object for programs.

import type { LoadResult } from '../config/load/load.js';
import { type Problem, problemOf } from '../config/text/problem.js';
import type { RouteTestResult } from '../server/route-tests/index.js';

/** A mistake as `--format json` shows it. Members without a value are left out. */
interface ReportedProblem {
  readonly file?: string;
  /** From 1. */
  readonly line?: number;
  readonly column?: number;
  readonly path?: string;
  readonly message: string;
}

/**
 * Returns the JSON text of a validation, with a line end.
 * @param configuration the name of the configuration, as the user gave it
 * @param notes warnings about other files
 * @param tests results of --route-tests
 */
export function validationReport(
  configuration: string,
  result: LoadResult,
  notes: readonly string[] = [],
  tests?: readonly RouteTestResult[],
): string {
  const errors = result.ok ? [] : result.errors;
  const warnings = [...result.warnings, ...notes.map((note) => problemOf('', note))];
  const ok = result.ok && (tests ?? []).every(({ mistakes }) => mistakes.length === 0);
  const report = {
    ok,
    configuration,
    errors: errors.map(reported),
    warnings: warnings.map(reported),
    ...(tests && { route_tests: tests }),
  };
  return `${JSON.stringify(report, undefined, 2)}\n`;
}

function reported({ source, line, column, path, message }: Problem): ReportedProblem {
  return {
    ...(source !== '' && { file: source }),
    ...(line > 0 && { line, column }),
    ...(path !== '' && { path }),
    message,
  };
}
