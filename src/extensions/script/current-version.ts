// The version of a module that new streams use, with the configuration as it validates it.

import { configValue, type Definitions, type ScriptKind, type WorkerScript } from '../sdk.js';
import type { Faults } from './faults.js';

export interface Version<K extends ScriptKind> {
  readonly definition: Definitions[K];
  readonly config: unknown;
}

export class CurrentVersion<K extends ScriptKind> {
  readonly #script: WorkerScript;
  readonly #kind: K;
  readonly #config: unknown;
  readonly #faults: Faults;
  #generation = -1;
  #version: Version<K> | undefined;

  constructor(script: WorkerScript, kind: K, config: unknown, faults: Faults) {
    this.#script = script;
    this.#kind = kind;
    this.#config = config;
    this.#faults = faults;
  }

  /** Returns undefined if the module cannot be used. */
  get(): Version<K> | undefined {
    if (this.#generation !== this.#script.generation) this.#update();
    return this.#version;
  }

  #update(): void {
    this.#generation = this.#script.generation;
    try {
      const definition = this.#script.definition(this.#kind);
      this.#version = { definition, config: configValue(definition.config, this.#config) };
    } catch (error) {
      this.#version = undefined;
      this.#faults.report('loading', error, 'what needs it fails');
    }
  }
}
