// The end of --mode validate for a configuration that is valid by itself: checks the files that it names, runs route tests, and prints
// the answer.

import { print } from '../common/process/print.js';
import type { LoadResult } from '../config/load/load.js';
import { formatProblems } from '../config/text/problem.js';
import { getLogger } from '../log/logger.js';
import { repeatOnStderr } from '../log/repeat-on-stderr.js';
import type { RouteTestResult } from '../server/route-tests/index.js';
import type { Options } from './options.js';
import { serverSettings } from './settings.js';
import { validationReport } from './validation-report.js';

const logger = getLogger('main');

/**
 * Returns the exit status.
 * @param name of the configuration, for messages
 */
export async function validate(
  options: Options,
  name: string,
  loaded: Extract<LoadResult, { readonly ok: true }>,
): Promise<number> {
  const { fileMistakes } = await import('../server/configuration/validate-files.js');
  const { dynamic } = serverSettings(options);
  const notes = fileMistakes(loaded.bootstrap, dynamic);
  for (const note of notes) logger.warning(note);
  const isJson = options.format === 'json';
  if (options.routeTests === '') {
    print(process.stdout, isJson ? validationReport(name, loaded, notes) : `configuration '${name}' OK\n`);
    return 0;
  }
  const { runRouteTests } = await import('../server/route-tests/index.js');
  const run = runRouteTests(options.routeTests, loaded.bootstrap, dynamic);
  if ('problems' in run) {
    const { problems } = run;
    const message = `error reading route tests '${options.routeTests}':\n${formatProblems(problems)}`;
    logger.critical(message);
    repeatOnStderr(logger, options.logPath, message);
    if (isJson) print(process.stdout, validationReport(name, { ...loaded, ok: false, errors: problems }, notes));
    return 1;
  }
  const { results } = run;
  print(process.stdout, isJson ? validationReport(name, loaded, notes, results) : summary(options, name, results));
  return results.every(hasPassed) ? 0 : 1;
}

function hasPassed({ mistakes }: RouteTestResult): boolean {
  return mistakes.length === 0;
}

/** Returns the counts, and each test that failed with how its route was found. */
function summary({ routeTests }: Options, name: string, results: readonly RouteTestResult[]): string {
  const failed = results.filter((result) => !hasPassed(result));
  const counts = `route tests '${routeTests}': ${results.length - failed.length} passed, ${failed.length} failed`;
  const details = failed.flatMap((test) => [
    `  ${test.name}:`,
    ...test.mistakes.map((mistake) => `    ${mistake}`),
    ...test.explanation.map((line) => `      ${line}`),
  ]);
  return `${[`configuration '${name}' OK`, counts, ...details].join('\n')}\n`;
}
