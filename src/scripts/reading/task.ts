// The task of the thread that reads modules, and its result: plain data.

import type { ScriptImage, ScriptSource, ScriptUse } from '../image.js';

export interface ScriptTask {
  readonly sources: readonly ScriptSource[];
  /** Configurations that the modules must accept. */
  readonly uses: readonly ScriptUse[];
}

export interface ReadScript {
  readonly name: string;
  /** Undefined: the module cannot be used. */
  readonly image: ScriptImage | undefined;
  /** What is wrong, one line each; empty: nothing. */
  readonly mistakes: readonly string[];
  /** Identities of the files that were read, or would have been, by path (see fileIdentity()). */
  readonly identities: Readonly<Record<string, string>>;
}
