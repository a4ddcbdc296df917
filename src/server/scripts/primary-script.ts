// One module on the primary: the version in use, the places that use it, and the files that it is read from.

import { FileWatch } from '../../common/files/file-watch.js';
import type { RegisteredScript } from '../../config/fields/scripts.js';
import type { PrimaryPart } from '../../extensions/factories.js';
import { getLogger } from '../../log/logger.js';
import type { ScriptImage, ScriptKind, ScriptUse } from '../../scripts/image.js';
import type { PublishedScript, ScriptReport } from '../../scripts/published.js';
import { readScripts } from '../../scripts/read-scripts.js';
import type { ReadScript } from '../../scripts/reading/task.js';
import { ScriptStats } from '../../stats/layouts/script.js';
import type { StatsStore } from '../../stats/store.js';
import type { Scope } from '../../stats/thread-stats.js';

const logger = getLogger('filter');

/** Node keeps what a version has loaded as long as the thread lives. */
const MAX_GENERATIONS = 1000;

/** What a module needs of all modules. */
export interface ScriptOwner {
  /** Called when `published` has changed. */
  publish(): void;
  /** Returns the configurations that routes in use give to the module. */
  usesOfRoutes(): Iterable<ScriptUse>;
}

export class PrimaryScript {
  readonly #source: RegisteredScript;
  readonly #stats: Scope;
  readonly #set: ScriptOwner;
  readonly #uses = new Set<ScriptUse>();
  readonly #watches = new Map<string, FileWatch>();
  #published: PublishedScript;
  #isReading = false;
  /** A file has changed since the reading began. */
  #isStale = false;
  #isClosed = false;

  constructor(
    source: RegisteredScript,
    read: ReadScript & { readonly image: ScriptImage },
    store: StatsStore,
    set: ScriptOwner,
  ) {
    this.#source = source;
    this.#set = set;
    this.#stats = store.scope(store.addScope(`script.${source.name}.`, ScriptStats));
    this.#published = { generation: 1, image: read.image };
    this.#stats.set(ScriptStats.at.generation, 1);
    this.#watch(read.identities);
  }

  get published(): PublishedScript {
    return this.#published;
  }

  use(kind: ScriptKind, config: unknown): PrimaryPart {
    const path = `the config of ${kind === 'network filter' ? 'a' : 'an'} ${kind}`;
    const use: ScriptUse = { module: this.#source.name, kind, config, path };
    this.#uses.add(use);
    return { close: () => this.#uses.delete(use) };
  }

  /** Called when a worker has logged a failure. */
  reported(kind: ScriptReport['kind']): void {
    this.#stats.increment(kind === 'uncaught' ? ScriptStats.at.uncaught_errors : ScriptStats.at.reload_failure);
  }

  close(): void {
    this.#isClosed = true;
    for (const watch of this.#watches.values()) watch.close();
    this.#watches.clear();
  }

  /** Watches these files instead of the current ones. */
  #watch(identities: Readonly<Record<string, string>>): void {
    if (!this.#source.isWatched) return;
    for (const [path, watch] of this.#watches) {
      if (path in identities) continue;
      watch.close();
      this.#watches.delete(path);
    }
    for (const [path, identity] of Object.entries(identities)) {
      if (this.#watches.has(path)) continue;
      const events = {
        changed: () => void this.#changed(),
        failed: (message: string) => logger.warning(`the script '${this.#source.name}': ${message}`),
      };
      this.#watches.set(path, new FileWatch(path, identity, events));
    }
  }

  async #changed(): Promise<void> {
    this.#isStale = true;
    if (this.#isReading) return;
    this.#isReading = true;
    while (this.#isStale && !this.#isClosed) {
      this.#isStale = false;
      const uses = [...this.#uses, ...this.#set.usesOfRoutes()];
      const [read] = await readScripts({ sources: [this.#source], uses });
      if (!this.#isClosed) this.#take(read!);
    }
    this.#isReading = false;
  }

  #take({ identities, image, mistakes }: ReadScript): void {
    const { generation } = this.#published;
    // A file that is missing or wrong now may be one that the version in use does not have.
    const known = Object.fromEntries([...this.#watches.keys()].map((path) => [path, '']));
    this.#watch(image === undefined ? { ...known, ...identities } : identities);
    if (image === undefined || mistakes.length > 0)
      return this.#refuse(mistakes.map(({ message, path }) => (path === '' ? message : `${path}: ${message}`)));
    if (generation >= MAX_GENERATIONS) {
      return this.#refuse([
        `it has been loaded ${generation} times, and each version needs memory: restart the server`,
      ]);
    }
    this.#published = { generation: generation + 1, image };
    this.#stats.increment(ScriptStats.at.reload_success);
    this.#stats.set(ScriptStats.at.generation, generation + 1);
    this.#set.publish();
    logger.info(`the script '${this.#source.name}' has changed: version ${generation + 1} serves new requests`);
  }

  #refuse(mistakes: readonly string[]): void {
    this.#stats.increment(ScriptStats.at.reload_failure);
    const { generation } = this.#published;
    for (const mistake of mistakes) logger.error(`${mistake}; version ${generation} of '${this.#source.name}' serves`);
  }
}
