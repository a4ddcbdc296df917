// Checks at load time that the TLS contexts of a bootstrap can be made of the secrets in static_resources that they name. Contexts that
// name none are checked by their extension, and those that await a source when the secret arrives.

import { BatonError, messageOf } from '../../common/errors/errors.js';
import { shownName } from '../../common/text/shown.js';
import { didYouMean } from '../../common/text/suggest.js';
import type { Report } from '../../config/catalog/extension.js';
import type { Bootstrap, DownstreamTlsContext, Secret, UpstreamTlsContext } from '../../config/generated/api.js';
import { MessageFinder } from '../../config/schema/find-messages.js';
import { loadSchema } from '../../config/schema/schema.js';
import { formatPath } from '../../config/text/path.js';
import { loadShim } from '../../io/shim.js';
import { engineMistake } from '../../tls/context-mistake.js';
import { clientSettings, serverSettings } from '../../tls/context-settings.js';
import { type NamedSecret, namedSecrets, resolveSecrets, type TlsSecrets } from '../../tls/secrets/context-secrets.js';

const TLS = 'envoy.extensions.transport_sockets.tls.v3';

type SettingsOf = (
  context: DownstreamTlsContext & UpstreamTlsContext,
  secrets: TlsSecrets,
) => ReturnType<typeof clientSettings>;

/** By message. */
const SETTINGS: readonly (readonly [message: string, SettingsOf])[] = [
  [`${TLS}.DownstreamTlsContext`, (context, secrets) => serverSettings(context, secrets, [])],
  [`${TLS}.UpstreamTlsContext`, (context, secrets) => clientSettings(context, secrets)],
];

export function checkTlsContexts(bootstrap: Bootstrap, report: Report): void {
  const { secrets = [] } = bootstrap.static_resources ?? {};
  const byName = new Map(secrets.map((secret) => [secret.name ?? '', secret]));
  for (const [message, settingsOf] of SETTINGS) {
    const finder = new MessageFinder(loadSchema(), message);
    finder.find('envoy.config.bootstrap.v3.Bootstrap', { ...bootstrap }, (found, path) => {
      const context = found as DownstreamTlsContext & UpstreamTlsContext;
      const mistake = mistakeOf(context, byName, settingsOf);
      if (mistake !== undefined) report(formatPath([...path, 'common_tls_context']), mistake);
    });
  }
}

function mistakeOf(
  context: DownstreamTlsContext & UpstreamTlsContext,
  secrets: ReadonlyMap<string, Secret>,
  settingsOf: SettingsOf,
): string | undefined {
  const config = { common: context.common_tls_context ?? {}, tickets: context };
  const named = namedSecrets(config);
  if (named.length === 0 || named.some(({ config: { sds_config: source } }) => source !== undefined)) return undefined;
  try {
    const resolved = resolveSecrets(config, (each) => staticSecret(each, secrets));
    return engineMistake(loadShim(), settingsOf(context, resolved!))?.message;
  } catch (error) {
    return messageOf(error);
  }
}

/** Throws BatonError for an unknown name. */
function staticSecret({ config: { name = '' } }: NamedSecret, secrets: ReadonlyMap<string, Secret>): Secret {
  const secret = secrets.get(name);
  if (secret !== undefined) return secret;
  const what = `static_resources.secrets has no '${shownName(name)}'`;
  throw new BatonError('CONFIG_INVALID', what + didYouMean(name, secrets.keys()));
}
