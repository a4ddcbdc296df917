// TypeScript to JavaScript: types are replaced by spaces, so that lines and columns stay as they are.
//
// The package is the one that Node uses itself where it strips types. Node's own function is experimental, does not exist in Node
// 20, and its errors have no position. JavaScript goes through it too: V8 reports no position of a syntax error.

import { createRequire } from 'node:module';

interface Swc {
  transformSync(source: string, options: { mode: 'strip-only'; filename: string; module: true }): { code: string };
}

/** An error of the package. */
interface SyntaxProblem {
  readonly message: string;
  /** Lines from 1, columns from 0. */
  readonly startLine: number;
  readonly startColumn: number;
}

let swc: Swc | undefined;

/** Throws a SyntaxError whose message begins with `path:line:column`. */
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
