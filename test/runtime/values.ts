// Runtime with given values, and given other ones later.

import { Runtime } from '../../src/runtime/runtime.js';
import { valueOfText } from '../../src/runtime/value.js';

export function runtimeOf(texts: Readonly<Record<string, string>>): Runtime {
  const runtime = new Runtime();
  setValues(runtime, texts);
  return runtime;
}

/** The next snapshot has these values and no others. */
export function setValues(runtime: Runtime, texts: Readonly<Record<string, string>>): void {
  const values = new Map(Object.entries(texts).map(([key, text]) => [key, valueOfText(text)]));
  runtime.apply({ version: runtime.version + 1, values });
}
