// The generic secrets (GenericSecret) that filters and routes name: those of the bootstrap, and those that sources deliver. Workers
// receive the values of those in use.

import { BatonError, messageOf } from '../../common/errors/errors.js';
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
  /** The values of those that were used, read once. */
  readonly #values = new Map<string, string>();
  readonly #held = new Map<string, Held>();
  /** Workers do not have the current values. */
  #isChanged = false;

  constructor(discovery: SecretDiscovery, port: PrimaryPort, secrets: readonly Secret[]) {
    this.#discovery = discovery;
    this.#port = port;
    this.#secrets = new Map(secrets.map((secret) => [secret.name ?? '', secret]));
  }

  problem({ name = '', sds_config: source }: SdsSecretConfig): string | undefined {
    if (source !== undefined) return undefined;
    try {
      this.#valueOf(name);
      return undefined;
    } catch (error) {
      return messageOf(error);
    }
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
      this.#publish();
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
    this.#publish();
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
        held.use?.close();
        throw error;
      }
    }
    held.uses++;
    return held;
  }

  #start(held: Held, config: SdsSecretConfig): void {
    if (config.sds_config === undefined) return this.#set(held, this.#valueOf(config.name ?? ''));
    held.use = this.#discovery.use(config, 'generic_secret', {
      prepare: (secret) => {
        const value = valueIn(secret);
        return {
          use: () => {
            this.#set(held, value);
            this.#publish();
          },
          discard() {},
        };
      },
      settled: () => {
        for (const target of held.targets) target.ready();
        held.targets.clear();
      },
    });
    if (held.use.secret !== undefined) this.#set(held, valueIn(held.use.secret));
  }

  /** Returns the value of a secret of the bootstrap. Throws a BatonError when there is none, or when it cannot be read. */
  #valueOf(name: string): string {
    let value = this.#values.get(name);
    if (value !== undefined) return value;
    const secret = this.#secrets.get(name);
    if (secret?.generic_secret === undefined) {
      const message = `static_resources.secrets has no generic_secret '${shownName(name)}'`;
      throw new BatonError('CONFIG_INVALID', message);
    }
    value = valueIn(withContents(secret, 'generic_secret'));
    this.#values.set(name, value);
    return value;
  }

  #set(held: Held, value: string): void {
    if (value === held.value) return;
    held.value = value;
    this.#isChanged = true;
  }

  #release(key: string): void {
    const held = this.#held.get(key);
    if (held === undefined || --held.uses > 0) return;
    this.#held.delete(key);
    held.use?.close();
    if (held.value !== '') this.#isChanged = true;
  }

  #publish(): void {
    if (!this.#isChanged) return;
    this.#isChanged = false;
    const values: PublishedSecrets = new Map(Array.from(this.#held, ([key, { value }]) => [key, value]));
    this.#port.publish(values);
  }
}

/** Throws a BatonError for a source that cannot be read. */
function valueIn({ generic_secret: generic }: Secret): string {
  if (generic?.secret === undefined) return '';
  return readDataSource(generic.secret, 'generic_secret.secret').toString('latin1');
}
