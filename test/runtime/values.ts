// A Runtime with given values, which can be replaced.

import { Runtime } from '../../src/runtime/runtime.js';
import { valueOfText } from '../../src/runtime/value.js';

export function runtimeOf(texts: Readonly<Record<string, string>>): Runtime {
  const runtime = new Runtime();
  setValues(runtime, texts);
  return runtime;
}

/** Replaces all values by a new snapshot. */
export function setValues(runtime: Runtime, texts: Readonly<Record<string, string>>): void {
  const values = new Map(Object.entries(texts).map(([key, text]) => [key, valueOfText(text)]));
  runtime.apply({ version: runtime.version + 1, values });
}
