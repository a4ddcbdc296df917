// Checks that the log files in a configuration can be written, without opening them.

import { checkWritable } from '../access-log/files/writable.js';
import type { Report } from '../config/catalog/extension.js';
import { formatPath, type PathPart } from '../config/text/path.js';
import { reportMistakes } from './report-mistakes.js';

/** Reports each access log file in `value` that is not writable. `value` is in canonical form and is found at `path`. */
export function reportLogFiles(value: unknown, path: PathPart[], report: Report): void {
  if (typeof value !== 'object' || value === null) return;
  const { '@type': type, path: file } = value as { readonly '@type'?: string; readonly path?: string };
  if (type?.endsWith(FILE_LOG) && file !== undefined) {
    reportMistakes(report, formatPath([...path, 'path']), () => checkWritable(file));
    return;
  }
  for (const [name, held] of Object.entries(value)) {
    path.push(Array.isArray(value) ? Number(name) : name);
    reportLogFiles(held, path, report);
    path.pop();
  }
}

const FILE_LOG = 'envoy.extensions.access_loggers.file.v3.FileAccessLog';
