// The path of the JSON Schema of the accepted configuration, which scripts/json-schema.ts generates.

import { packagePath } from '../../common/package/package-root.js';

/** Returns the path of the file that --schema prints. */
export function jsonSchemaPath(): string {
  return packagePath('dist', 'baton.schema.json');
}
