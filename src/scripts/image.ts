// The plain data of a module that threads exchange.

import type { ScriptKind } from '../config/fields/scripts.js';

export type { ScriptKind } from '../config/fields/scripts.js';

/** Where a module is, as the bootstrap says. */
export interface ScriptSource {
  readonly name: string;
  /** Absolute path; undefined: it is a package. */
  readonly filename: string | undefined;
  readonly packageName: string | undefined;
}

/** A file of a module. */
export interface SourceFile {
  /** JavaScript, in which every character of the TypeScript source is in its place; or JSON. */
  readonly text: string;
  readonly isJson: boolean;
}

/** A version of a module: its entry and the files that it imports, without packages. */
export interface ScriptImage {
  readonly name: string;
  /** The URL of the entry file. */
  readonly entry: string;
  /** The files by URL. */
  readonly files: Readonly<Record<string, SourceFile>>;
}

/** A place in a configuration that names a module. */
export interface ScriptUse {
  readonly module: string;
  readonly kind: ScriptKind;
  /** Undefined: there is none. */
  readonly config: unknown;
  /** The path of the configuration, or what else describes it, for messages. */
  readonly path: string;
}

/** Where native code and packages are resolved for a module that is a package. */
export const SOURCE_OF_PACKAGE = 'baton-package.js';
