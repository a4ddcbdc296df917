// Captures the log of this thread while a test runs.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { initLogging } from '../../src/log/logger.js';
import { type Teardown, tempDir } from '../e2e/harness/environment.js';

/** Redirects the log to a file of the test. */
export function captureLog(t: Teardown): { text(): string } {
  const path = join(tempDir(t), 'log');
  initLogging({ path });
  t.teardown(() => initLogging({}));
  return { text: () => readFileSync(path, 'utf8') };
}
