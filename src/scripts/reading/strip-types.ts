// Converts TypeScript to JavaScript: replaces types by spaces, so that lines and columns stay as they are.
//
// Node itself strips types with the same package. Node's function is not used: it is experimental, does not exist in Node 20, and
// its errors have no position. JavaScript files are parsed with the package too, because V8 reports no position for syntax errors.

import { createRequire } from 'node:module';

interface Swc {
  transformSync(source: string, options: { mode: 'strip-only'; filename: string; module: true }): { code: string };
}

/** The error that the package throws. */
interface SyntaxProblem {
  readonly message: string;
  /** Lines from 1, columns from 0. */
  readonly startLine: number;
  readonly startColumn: number;
}

let swc: Swc | undefined;

/** Returns `source` without types. Throws a SyntaxError whose message begins with `path:line:column`. */
export function stripTypes(source: string, path: string): string {
  swc ??= createRequire(import.meta.url)('@swc/wasm-typescript') as Swc;
  try {
    return swc.transformSync(source, { mode: 'strip-only', filename: path, module: true }).code;
  } catch (error) {
    const { message, startColumn, startLine } = error as SyntaxProblem;
    if (startLine === undefined) throw error;
    throw new SyntaxError(`${path}:${startLine}:${startColumn + 1}: ${message}`);
  }
}
