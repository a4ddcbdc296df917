// The secrets that sources deliver (SDS). All contexts that name the same one share it.

import type { SdsSecretConfig } from '../../config/generated/api.js';
import type { SecretDiscovery, SecretKind, SecretUse, SecretUser } from '../../tls/secrets/secret-discovery.js';
import { SecretProvider } from './secret-provider.js';
import type { SecretsContext } from './secrets-context.js';

export class SecretSet implements SecretDiscovery {
  readonly #context: SecretsContext;
  readonly #providers = new Map<string, SecretProvider>();

  constructor(context: SecretsContext) {
    this.#context = context;
  }

  get providers(): Iterable<SecretProvider> {
    return this.#providers.values();
  }

  use({ name = '', sds_config: source }: SdsSecretConfig, kind: SecretKind, user: SecretUser): SecretUse {
    const key = JSON.stringify([kind, name, source]);
    let provider = this.#providers.get(key);
    if (provider === undefined) {
      provider = new SecretProvider(this.#context, { name, kind, source: source! });
      this.#providers.set(key, provider);
    }
    const used = provider;
    used.add(user);
    return {
      get secret() {
        return used.secret;
      },
      get isSettled() {
        return used.isSettled;
      },
      close: () => {
        if (!used.remove(user) || used.isUsed || this.#providers.get(key) !== used) return;
        this.#providers.delete(key);
        used.close();
      },
    };
  }

  /** Ends all subscriptions and watches. Contexts stay as they are. */
  close(): void {
    for (const provider of this.#providers.values()) provider.close();
    this.#providers.clear();
  }
}
