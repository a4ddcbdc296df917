// Where the JSON Schema of the accepted configuration lies, which scripts/json-schema.ts makes at the build.

import { packagePath } from '../../common/package/package-root.js';

/** The file that --schema prints. */
export function jsonSchemaPath(): string {
  return packagePath('dist', 'baton.schema.json');
}
