// The task of the thread that reads modules, and its result: plain data.

import type { ScriptImage, ScriptSource, ScriptUse } from '../image.js';

export interface ScriptTask {
  /** Modules to read, or versions that were read before. */
  readonly sources: readonly (ScriptSource | ScriptImage)[];
  /** Configurations that the modules must accept. */
  readonly uses: readonly ScriptUse[];
}

/** A reason why a module, or one of its configurations, cannot be used. */
export interface ScriptMistake {
  /** ScriptUse.path of the configuration; '': the module is at fault. */
  readonly path: string;
  readonly message: string;
}

export interface ReadScript {
  readonly name: string;
  /** Undefined: the module cannot be used. */
  readonly image: ScriptImage | undefined;
  /** Empty: it can be used. */
  readonly mistakes: readonly ScriptMistake[];
  /** Identities of the files that were read, or would have been, by path (see fileIdentity()). */
  readonly identities: Readonly<Record<string, string>>;
}
