// What modules say of configurations that sources deliver. A validator is the user's code and may take long, so a short-lived thread
// runs it, before the primary decides on the configuration.

import { hash } from 'node:crypto';
import { nextTurn } from '../../common/time/next-turn.js';
import type { ScriptImage, ScriptUse } from '../../scripts/image.js';
import type { PublishedScript } from '../../scripts/published.js';
import { checkScripts } from '../../scripts/read-scripts.js';

/** Configurations that are remembered, at least. */
const MIN_KNOWN = 10_000;
/** Some milliseconds of work. */
const USES_PER_TURN = 256;
/** Threads that may fail for parts of what is asked, of which each may take 15 s: enough to find three configurations at fault. */
const MAX_FAILURES = 6;
/** Failures after which a configuration is not checked again: its thread may have been slow on a busy machine. */
const MAX_RETRIES = 2;

export type ScriptConfig = Omit<ScriptUse, 'path'>;

/** A configuration that no module has seen. */
interface Unknown {
  readonly key: string;
  readonly use: ScriptConfig;
  readonly image: ScriptImage;
}

export class ScriptVerdicts {
  /** Returns the version in use; undefined: no such module is registered. */
  readonly #versionOf: (module: string) => PublishedScript | undefined;
  /** Why the module refuses a configuration, by keyOf(); '' if it accepts it. The least recently requested are first. */
  readonly #known = new Map<string, string>();
  /** How often no thread could check a configuration, by keyOf(). */
  readonly #failures = new Map<string, number>();
  #limit = MIN_KNOWN;
  #queued = new Map<string, Unknown>();
  /** Ends with the thread that runs. */
  #running: Promise<void> = Promise.resolve();
  /** The next thread, which takes what is queued. */
  #next: Promise<void> | undefined;

  readonly #checkScripts: typeof checkScripts;

  constructor(versionOf: (module: string) => PublishedScript | undefined, check = checkScripts) {
    this.#versionOf = versionOf;
    this.#checkScripts = check;
  }

  /** Returns why the module refuses the configuration; undefined if it accepts it, or has not been asked. */
  refusal(use: ScriptConfig): string | undefined {
    const version = this.#versionOf(use.module);
    return (version && this.#known.get(keyOf(use, version))) || undefined;
  }

  /**
   * Asks the modules for those configurations that they have not seen. Resolves when refusal() has their verdicts. Does not reject.
   * `uses`: in groups, between which other work may run.
   */
  async prepare(uses: Iterable<readonly ScriptConfig[]>): Promise<void> {
    const unknown = new Map<string, Unknown>();
    let count = 0;
    let inTurn = 0;
    for (const group of uses) {
      for (const use of group) this.#look(use, unknown);
      count += group.length;
      inTurn += group.length + 1;
      if (inTurn < USES_PER_TURN) continue;
      inTurn = 0;
      await nextTurn();
    }
    // Not less than before: another update may be between its preparation and its check.
    this.#limit = Math.max(this.#limit, 2 * count);
    if (unknown.size === 0) return;
    for (const [key, each] of unknown) this.#queued.set(key, each);
    this.#next ??= this.#askNext();
    await this.#next;
  }

  #look(use: ScriptConfig, unknown: Map<string, Unknown>): void {
    const version = this.#versionOf(use.module);
    if (version === undefined) return;
    const key = keyOf(use, version);
    const known = this.#known.get(key);
    const failures = this.#failures.get(key) ?? 0;
    if (known === undefined || (failures > 0 && failures <= MAX_RETRIES))
      return void unknown.set(key, { key, use, image: version.image });
    this.#known.delete(key);
    this.#known.set(key, known);
  }

  /** One thread at a time: what is queued meanwhile is checked by the next one. */
  #askNext(): Promise<void> {
    this.#running = this.#running.then(() => {
      this.#next = undefined;
      const asked = [...this.#queued.values()];
      this.#queued = new Map();
      return this.#ask(asked);
    });
    return this.#running;
  }

  async #ask(asked: readonly Unknown[]): Promise<void> {
    const failed = await this.#check(asked);
    const left = asked.length > 1 ? await this.#askParts(failed) : failed;
    for (const { key } of left) this.#failures.set(key, (this.#failures.get(key) ?? 0) + 1);
    for (const key of this.#known.keys()) {
      if (this.#known.size <= this.#limit) break;
      this.#known.delete(key);
      this.#failures.delete(key);
    }
  }

  /**
   * Asks again where a thread has failed: one configuration may be at fault, such as one for which the validator does not end. Its part is
   * asked one by one; of n configurations, about 2 √n threads are started for each fault. Returns those that no thread could check.
   */
  async #askParts(failed: readonly Unknown[]): Promise<readonly Unknown[]> {
    const size = Math.ceil(Math.sqrt(failed.length));
    const left: Unknown[] = [];
    let failures = 0;
    const ask = async (part: readonly Unknown[]): Promise<readonly Unknown[]> => {
      if (failures >= MAX_FAILURES) return this.#giveUp(part);
      const wrong = await this.#check(part);
      if (wrong.length > 0) failures++;
      return wrong;
    };
    for (let at = 0; at < failed.length; at += size) {
      const wrong = await ask(failed.slice(at, at + size));
      for (const each of wrong) left.push(...(size > 1 ? await ask([each]) : wrong));
    }
    return left;
  }

  #giveUp(part: readonly Unknown[]): readonly Unknown[] {
    for (const { key, use } of part)
      this.#known.set(key, `the script '${use.module}' cannot check it: the checks of others have failed`);
    return part;
  }

  /** Notes the verdicts of one thread. Returns those for which it has failed. */
  async #check(asked: readonly Unknown[]): Promise<readonly Unknown[]> {
    const images = [...new Set(asked.map(({ image }) => image))];
    const results = await this.#checkScripts(
      images,
      asked.map(({ key, use }) => ({ ...use, path: key })),
    );
    // The workers check what no thread could.
    if (results === undefined) return [];
    const failed: Unknown[] = [];
    for (const [index, { mistakes }] of results.entries()) {
      const own = asked.filter(({ image }) => image === images[index]);
      const messages = new Map(mistakes.map(({ message, path }) => [path, message]));
      const failure = messages.get('');
      if (failure !== undefined) failed.push(...own);
      for (const { key } of own) {
        this.#known.set(key, failure ?? messages.get(key) ?? '');
        if (failure === undefined) this.#failures.delete(key);
      }
    }
    return failed;
  }
}

/** Another version of a module may decide otherwise. */
function keyOf({ config, kind, module }: ScriptConfig, { generation }: PublishedScript): string {
  return hash('sha256', JSON.stringify([module, generation, kind, config ?? null]), 'base64');
}
