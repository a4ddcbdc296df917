// The values of generic secrets on a worker, as the primary has published them last.

import type { SdsSecretConfig } from '../../config/generated/api.js';
import type { GenericSecret, WorkerPort, WorkerSecrets } from '../../extensions/factories.js';
import { type PublishedSecrets, secretKey } from '../messages/published-secrets.js';

export class GenericSecrets implements WorkerSecrets {
  #values: PublishedSecrets;

  constructor(port: WorkerPort) {
    this.#values = (port.state as PublishedSecrets | undefined) ?? new Map();
    port.onState = (state) => {
      this.#values = state as PublishedSecrets;
    };
  }

  generic(config: SdsSecretConfig): GenericSecret {
    const key = secretKey(config);
    const value = () => this.#values.get(key) ?? '';
    return {
      get value() {
        return value();
      },
    };
  }
}
