// The generic secrets that the primary publishes to the workers: plain data.

import type { SdsSecretConfig } from '../../config/generated/api.js';

/** The name of the port between them. */
export const SECRETS_PORT = 'generic secrets';

/** The state that the primary publishes: values by secretKey(), one character for each byte. */
export type PublishedSecrets = ReadonlyMap<string, string>;

/** Identifies a secret: its name and its source. */
export function secretKey({ name = '', sds_config: source }: SdsSecretConfig): string {
  return source === undefined ? name : JSON.stringify([name, source]);
}
