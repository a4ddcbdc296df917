// envoy.filters.http.credential_injector: adds a credential to requests, so that clients need not have it.

import type {
  Any,
  CredentialInjector,
  Generic,
  Oauth2OAuth2 as OAuth2,
  SdsSecretConfig,
} from '../../../../config/generated/api.js';
import {
  byteText,
  byValue,
  type HttpChain,
  type HttpFilterExtension,
  type NamedExtension,
  obeyed,
  reportMistakes,
  unpack,
  type WorkerContext,
} from '../../../sdk.js';
import { FIELD_VALUE } from '../../common/field-value.js';
import { tokenEndpoint } from '../oauth2/token-endpoint.js';
import { ClientCredentials } from './client-credentials.js';
import { type Credential, genericKey, SecretCredential } from './credential.js';
import { InjectorFilter } from './injector-filter.js';
import { InjectorStats, TokenStats } from './stats.js';

const FILTER = 'envoy.extensions.filters.http.credential_injector.v3.CredentialInjector';
const GENERIC = 'envoy.extensions.http.injected_credentials.generic.v3.Generic';
const OAUTH = 'envoy.extensions.http.injected_credentials.oauth2.v3.OAuth2';

export const credentialInjector: HttpFilterExtension<CredentialInjector> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.credential_injector',
  runsUpstream: true,
  typeUrls: [`type.googleapis.com/${FILTER}`],
  implemented: { [FILTER]: obeyed('overwrite', 'allow_request_without_credential', 'credential') },
  validate(message, report) {
    const config = message as CredentialInjector;
    const { generic, oauth2 } = credentialOf(config);
    const where = 'credential.typed_config';
    if (generic !== undefined) {
      reportMistakes(report, `${where}.header`, () => genericKey(generic.header));
      if (!FIELD_VALUE.test(byteText(generic.header_value_prefix ?? '')))
        report(`${where}.header_value_prefix`, 'it has characters that no value of a field can have');
    }
    if (oauth2 === undefined) return;
    reportMistakes(report, '', () => tokenEndpoint(oauth2.token_endpoint ?? {}, `${where}.token_endpoint`));
    const { auth_type: type, client_secret: secret } = oauth2.client_credentials ?? {};
    if (secret === undefined && type !== 'TLS_CLIENT_AUTH')
      report(`${where}.client_credentials`, 'Invalid oauth2 client secret configuration: client_secret is required');
  },
  secrets: (message) => secretsOf(message as CredentialInjector),
  scopes: (config, chain) => [
    { prefix: prefixOf(chain), layout: InjectorStats },
    ...(credentialOf(config).oauth2 === undefined ? [] : [{ prefix: `${prefixOf(chain)}oauth2.`, layout: TokenStats }]),
  ],
  createOnWorker(config, context, chain) {
    const credential = createCredential(config, context, chain);
    const rules = {
      credential,
      overwrites: config.overwrite ?? false,
      mayBeMissing: config.allow_request_without_credential ?? false,
      stats: context.scope(prefixOf(chain), InjectorStats),
    };
    return { create: (stream) => new InjectorFilter(stream, rules), close: () => credential.close?.() };
  },
};

/** The kinds of credentials. */
export const injectedCredentials: readonly NamedExtension[] = [
  {
    category: 'envoy.http.injected_credentials',
    name: 'envoy.http.injected_credentials.generic',
    typeUrls: [`type.googleapis.com/${GENERIC}`],
    implemented: { [GENERIC]: obeyed('credential', 'header', 'header_value_prefix') },
  },
  {
    category: 'envoy.http.injected_credentials',
    name: 'envoy.http.injected_credentials.oauth2',
    typeUrls: [`type.googleapis.com/${OAUTH}`],
    implemented: {
      [OAUTH]: {
        ...obeyed('token_endpoint', 'scopes', 'client_credentials', 'token_fetch_retry_interval', 'endpoint_params'),
      },
      [`${OAUTH}.ClientCredentials`]: {
        ...obeyed('client_id', 'client_secret'),
        // As in Envoy, the secret is in the form in both of the first cases.
        auth_type: byValue({ BASIC_AUTH: true, URL_ENCODED_BODY: true, TLS_CLIENT_AUTH: true }),
      },
      [`${OAUTH}.EndpointParameter`]: obeyed('name', 'value'),
    },
  },
];

function credentialOf({ credential }: CredentialInjector): { generic?: Generic; oauth2?: OAuth2 } {
  const config = credential?.typed_config as Any | undefined;
  const generic = config && unpack(config, GENERIC);
  const oauth2 = config && unpack(config, OAUTH);
  return { ...(generic && { generic }), ...(oauth2 && { oauth2 }) };
}

function secretsOf(config: CredentialInjector): SdsSecretConfig[] {
  const { generic, oauth2 } = credentialOf(config);
  return [generic?.credential, clientSecretOf(oauth2)].filter((each) => each !== undefined);
}

function clientSecretOf(config: OAuth2 | undefined): SdsSecretConfig | undefined {
  const { auth_type: type, client_secret: secret } = config?.client_credentials ?? {};
  return type === 'TLS_CLIENT_AUTH' ? undefined : secret;
}

function createCredential(config: CredentialInjector, context: WorkerContext, chain: HttpChain): Credential {
  const { generic, oauth2 } = credentialOf(config);
  if (generic !== undefined) return new SecretCredential(generic, context.secrets.generic(generic.credential!));
  const secret = clientSecretOf(oauth2);
  const stats = context.scope(`${prefixOf(chain)}oauth2.`, TokenStats);
  return new ClientCredentials(oauth2!, secret && context.secrets.generic(secret), context, stats);
}

function prefixOf({ statPrefix }: HttpChain): string {
  return `${statPrefix}credential_injector.`;
}
