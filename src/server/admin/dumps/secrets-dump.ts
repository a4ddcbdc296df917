// Secrets (envoy.admin.v3.SecretsConfigDump): those of the bootstrap, and those from sources.

import type { DumpResource } from '../../../admin/config-dump/config-dump.js';
import type { Secret } from '../../../config/generated/api.js';
import { shownSecret } from '../../../tls/secrets/shown-secret.js';
import { RESOURCE_MESSAGES } from '../../../xds/resource.js';
import type { SecretProvider } from '../../secrets/secret-provider.js';
import type { SecretSet } from '../../secrets/secret-set.js';
import { any, type Dump, mapped } from './dump.js';
import { statusFields, versionFields } from './state-fields.js';

const MESSAGE = RESOURCE_MESSAGES.secret;

/** `secrets`: those of the bootstrap, redacted. */
export function secretsDump(discovered: SecretSet, secrets: readonly Secret[], last_updated: string): Dump {
  const static_secrets = mapped(
    () => secrets,
    (secret) => {
      const { name } = secret;
      const held = any(MESSAGE, secret);
      return { name: name ?? '', message: { ...(name !== undefined && { name }), last_updated, secret: held } };
    },
  );
  const those = (isActive: boolean) =>
    mapped(
      () => [...discovered.providers].filter(({ secret }) => (secret !== undefined) === isActive),
      discoveredSecret,
    );
  return {
    message: 'SecretsConfigDump',
    lists: { static_secrets, dynamic_active_secrets: those(true), dynamic_warming_secrets: those(false) },
  };
}

/** As in Envoy, one that has not arrived is shown by its name. */
function discoveredSecret({ createdAt, name, secret, state }: SecretProvider): DumpResource {
  const version =
    secret === undefined
      ? { version_info: 'uninitialized', last_updated: createdAt.toISOString() }
      : versionFields(state);
  const held = any(MESSAGE, secret === undefined ? { name } : shownSecret(secret));
  return { name, message: { name, ...version, secret: held, ...statusFields(MESSAGE, state) } };
}
