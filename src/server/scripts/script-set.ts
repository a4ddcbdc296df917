// The modules of scripts, on the primary: publishes their versions to the workers, and reads them again when their files change.

import { BatonError } from '../../common/errors/errors.js';
import { didYouMean } from '../../common/text/suggest.js';
import { type RegisteredScript, registeredScripts } from '../../config/fields/scripts.js';
import type { Bootstrap } from '../../config/generated/api.js';
import type { PrimaryPart, PrimaryPort, PrimaryScripts } from '../../extensions/factories.js';
import type { ScriptKind } from '../../scripts/image.js';
import type { ScriptReport } from '../../scripts/published.js';
import type { ReadScript } from '../../scripts/reading/task.js';
import type { StatsStore } from '../../stats/store.js';
import type { Resource, ResourceType } from '../../xds/resource.js';
import type { RouteScripts } from '../routes/route-scripts.js';
import { type RoutedScripts, usesInResource, usesOfRoutes } from './delivered-uses.js';
import { PrimaryScript } from './primary-script.js';
import { type ScriptConfig, ScriptVerdicts } from './script-verdicts.js';

export class ScriptSet implements PrimaryScripts {
  readonly #port: PrimaryPort;
  readonly #scripts = new Map<string, PrimaryScript>();
  readonly #verdicts = new ScriptVerdicts((module) => this.#scripts.get(module)?.published);
  readonly #routed: RoutedScripts;

  /** `loaded`: the usable versions of all modules that the bootstrap registers. */
  constructor(
    bootstrap: Bootstrap,
    loaded: readonly ReadScript[],
    port: PrimaryPort,
    store: StatsStore,
    routed: RoutedScripts,
  ) {
    this.#port = port;
    this.#routed = routed;
    const read = new Map(loaded.map((script) => [script.name, script]));
    for (const source of registeredScripts(bootstrap)) this.#add(source, read.get(source.name), store);
    if (this.#scripts.size === 0) return;
    port.onMessage = (_worker, message) => {
      const { kind, name } = message as ScriptReport;
      this.#scripts.get(name)?.reported(kind);
    };
    this.#publish();
  }

  use(module: string, kind: ScriptKind, config: unknown): PrimaryPart {
    const script = this.#scripts.get(module);
    if (script !== undefined) {
      const refusal = this.#verdicts.refusal({ module, kind, config });
      if (refusal !== undefined) throw new BatonError('CONFIG_INVALID', refusal);
      return script.use(kind, config);
    }
    const hint = didYouMean(module, this.#scripts.keys());
    throw new BatonError('CONFIG_INVALID', `no module '${module}' is registered in bootstrap_extensions${hint}`);
  }

  /** A module is registered. */
  get isUsed(): boolean {
    return this.#scripts.size > 0;
  }

  /** The verdicts on configurations of routes. */
  get ofRoutes(): RouteScripts {
    return {
      refusal: (module, config) => this.#verdicts.refusal({ module, kind: 'http filter', config }),
      discovered: this.#routed.discovered,
    };
  }

  /** Asks modules for their verdicts on the configurations in resources. Does not reject. */
  async prepare(type: ResourceType, resources: readonly Resource[]): Promise<void> {
    if (this.isUsed) await this.#verdicts.prepare(this.#usesIn(type, resources));
  }

  *#usesIn(type: ResourceType, resources: readonly Resource[]): Generator<readonly ScriptConfig[], void> {
    for (const resource of resources) yield* usesInResource(type, resource, this.#routed);
  }

  close(): void {
    for (const script of this.#scripts.values()) script.close();
  }

  #add(source: RegisteredScript, read: ReadScript | undefined, store: StatsStore): void {
    if (read?.image === undefined) throw new Error(`the script '${source.name}' has not been loaded`);
    this.#scripts.set(
      source.name,
      new PrimaryScript(source, { ...read, image: read.image }, store, {
        publish: () => this.#publish(),
        usesOfRoutes: () => usesOfRoutes(source.name, this.#routed),
      }),
    );
  }

  #publish(): void {
    this.#port.publish([...this.#scripts.values()].map(({ published }) => published));
  }
}
