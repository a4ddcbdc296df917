// envoy.filters.http.basic_auth: accepts requests with the name and password of a known user (RFC 7617).

import type { Any, BasicAuth, BasicAuthPerRoute } from '../../../../config/generated/api.js';
import {
  byteText,
  type HttpFilterExtension,
  headerKey,
  obeyed,
  readDataSource,
  reportMistakes,
  settableKey,
  unpack,
} from '../../../sdk.js';
import { BasicAuthFilter, type BasicAuthRules, BasicAuthStats, type UsersOfPlace } from './basic-auth-filter.js';
import { Users } from './users.js';

const PACKAGE = 'envoy.extensions.filters.http.basic_auth.v3';
const FILTER = `${PACKAGE}.BasicAuth`;
const PER_ROUTE = `${PACKAGE}.BasicAuthPerRoute`;

export const basicAuth: HttpFilterExtension<BasicAuth> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.basic_auth',
  typeUrls: [`type.googleapis.com/${FILTER}`, `type.googleapis.com/${PER_ROUTE}`],
  implemented: {
    'envoy.extensions.filters.http.basic_auth.v3.BasicAuth': obeyed(
      'users',
      'forward_username_header',
      'authentication_header',
      'allow_missing',
      'emit_dynamic_metadata',
      'realm',
    ),
    'envoy.extensions.filters.http.basic_auth.v3.BasicAuthPerRoute': obeyed('users', 'realm'),
  },
  validate(config, report) {
    const filter = unpack(config as Any, FILTER);
    reportMistakes(report, '', () => usersOf(filter ?? (config as BasicAuthPerRoute), ''));
    for (const field of ['authentication_header', 'forward_username_header'] as const) {
      const name = filter?.[field];
      if (name) reportMistakes(report, field, () => settableKey(name));
    }
  },
  scopes: (_config, { statPrefix }) => [{ prefix: `${statPrefix}basic_auth.`, layout: BasicAuthStats }],
  createOnWorker(config, { scope }, { filterName, statPrefix }) {
    const own = usersOf(config, '');
    const { forward_username_header: forwarded = '' } = config;
    const rules: BasicAuthRules = {
      credentials: headerKey(config.authentication_header || 'authorization'),
      forwarded: forwarded === '' ? undefined : headerKey(forwarded),
      mayBeMissing: config.allow_missing ?? false,
      namespace: config.emit_dynamic_metadata === true ? filterName : undefined,
      stats: scope(`${statPrefix}basic_auth.`, BasicAuthStats),
    };
    return {
      create: (stream, routeUsers) =>
        new BasicAuthFilter(stream, rules, (routeUsers as UsersOfPlace | undefined) ?? own),
    };
  },
  /** The most specific configuration applies. */
  compileRouteConfig: (configs, where) => usersOf(configs.at(-1) as BasicAuthPerRoute, where),
};

function usersOf({ realm = '', users }: BasicAuth | BasicAuthPerRoute, where: string): UsersOfPlace {
  const at = where === '' ? 'users' : `${where}.users`;
  const text = users === undefined ? '' : readDataSource(users, at).toString();
  return { realm: byteText(realm), users: new Users(text, at) };
}
