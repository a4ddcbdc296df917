// The generic secrets (GenericSecret) that filters and routes name: those of the bootstrap, and those that sources deliver. Workers
// receive the values of those in use.

import { BatonError } from '../../common/errors/errors.js';
import { shownName } from '../../common/text/shown.js';
import { readDataSource } from '../../config/fields/data-source.js';
import { isFileSource } from '../../config/fields/file-of-source.js';
import type { SdsSecretConfig, Secret } from '../../config/generated/api.js';
import type { PrimaryFilterContext, PrimaryPart, PrimaryPort, PrimarySecrets } from '../../extensions/factories.js';
import { withContents } from '../../tls/secrets/secret-contents.js';
import type { SecretDiscovery, SecretUse } from '../../tls/secrets/secret-discovery.js';
import { type PublishedSecrets, secretKey } from '../../worker/messages/published-secrets.js';

/** A secret in use. */
interface Held {
  uses: number;
  value: string;
  /** Undefined: it is in the bootstrap. */
  use: SecretUse | undefined;
  /** Init targets that wait for it. */
  readonly targets: Set<{ ready(): void }>;
}

export class GenericSecrets implements PrimarySecrets {
  readonly #discovery: SecretDiscovery;
  readonly #port: PrimaryPort;
  /** static_resources.secrets by name. */
  readonly #secrets: ReadonlyMap<string, Secret>;
  readonly #held = new Map<string, Held>();

  constructor(discovery: SecretDiscovery, port: PrimaryPort, secrets: readonly Secret[]) {
    this.#discovery = discovery;
    this.#port = port;
    this.#secrets = new Map(secrets.map((secret) => [secret.name ?? '', secret]));
  }

  problem({ name = '', sds_config: source }: SdsSecretConfig): string | undefined {
    if (source !== undefined || this.#secrets.get(name)?.generic_secret !== undefined) return undefined;
    return `static_resources.secrets has no generic_secret '${shownName(name)}'`;
  }

  use(configs: Iterable<SdsSecretConfig>, waitFor?: PrimaryFilterContext['waitFor']): PrimaryPart {
    const keys = new Set<string>();
    const targets = new Map<{ ready(): void }, Held>();
    const close = () => {
      for (const [target, held] of targets) {
        held.targets.delete(target);
        target.ready();
      }
      for (const key of keys) this.#release(key);
      keys.clear();
    };
    try {
      for (const config of configs) {
        const key = secretKey(config);
        if (keys.has(key)) continue;
        const held = this.#hold(key, config);
        keys.add(key);
        if (held.use === undefined || held.use.isSettled || waitFor === undefined) continue;
        const target = waitFor(`SdsApi ${config.name ?? ''}`, isFileSource(config.sds_config));
        held.targets.add(target);
        targets.set(target, held);
      }
    } catch (error) {
      close();
      throw error;
    }
    return { close };
  }

  #hold(key: string, config: SdsSecretConfig): Held {
    let held = this.#held.get(key);
    if (held === undefined) {
      held = { uses: 0, value: '', use: undefined, targets: new Set() };
      this.#held.set(key, held);
      try {
        this.#start(held, config);
      } catch (error) {
        this.#held.delete(key);
        throw error;
      }
    }
    held.uses++;
    return held;
  }

  #start(held: Held, config: SdsSecretConfig): void {
    if (config.sds_config === undefined) return this.#set(held, this.#named(config));
    held.use = this.#discovery.use(config, 'generic_secret', {
      prepare: (secret) => ({ use: () => this.#set(held, secret), discard() {} }),
      settled: () => {
        for (const target of held.targets) target.ready();
        held.targets.clear();
      },
    });
    if (held.use.secret !== undefined) this.#set(held, held.use.secret);
  }

  #named(config: SdsSecretConfig): Secret {
    const problem = this.problem(config);
    if (problem !== undefined) throw new BatonError('CONFIG_INVALID', problem);
    return withContents(this.#secrets.get(config.name ?? '')!, 'generic_secret');
  }

  #set(held: Held, { generic_secret: generic }: Secret): void {
    const value = generic?.secret === undefined ? '' : readDataSource(generic.secret).toString('latin1');
    if (value === held.value) return;
    held.value = value;
    this.#publish();
  }

  #release(key: string): void {
    const held = this.#held.get(key);
    if (held === undefined || --held.uses > 0) return;
    this.#held.delete(key);
    held.use?.close();
    if (held.value !== '') this.#publish();
  }

  #publish(): void {
    const values: PublishedSecrets = new Map(Array.from(this.#held, ([key, { value }]) => [key, value]));
    this.#port.publish(values);
  }
}
