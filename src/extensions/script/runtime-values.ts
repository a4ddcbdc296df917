// ctx.runtime: values of runtime layers.

import type { RuntimeValues } from '../../api/index.js';
import type { Runtime } from '../sdk.js';

export class ScriptRuntime implements RuntimeValues {
  readonly #runtime: Runtime;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  number(key: string, otherwise: number): number {
    return this.#runtime.get(key)?.double ?? otherwise;
  }

  string(key: string, otherwise: string): string {
    return this.#runtime.get(key)?.text ?? otherwise;
  }

  boolean(key: string, otherwise: boolean): boolean {
    const text = this.#runtime.get(key)?.text;
    if (text === 'true') return true;
    return text === 'false' ? false : otherwise;
  }
}
