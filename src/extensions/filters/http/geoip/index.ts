// envoy.filters.http.geoip: sets header fields by the place of the client, with the provider envoy.geoip_providers.maxmind.

import type { Geoip, MaxMindConfig } from '../../../../config/generated/api.js';
import {
  type HttpChain,
  type HttpFilterExtension,
  headerKey,
  type NamedExtension,
  obeyed,
  onlyExtension,
  reportMistakes,
  unpack,
  type WorkerContext,
} from '../../../sdk.js';
import { openDatabases, WorkerDatabases } from './database-files.js';
import { databases, fieldsWithoutDatabase, KINDS, type Kind, pathOf } from './database-kinds.js';
import { GeoipFilter } from './geoip-filter.js';
import { DatabaseLookUp } from './look-up.js';
import { DatabaseStats, FileStats, GeoipStats } from './stats.js';

const FILTER = 'envoy.extensions.filters.http.geoip.v3.Geoip';
const MAXMIND = 'envoy.extensions.geoip_providers.maxmind.v3.MaxMindConfig';
const COMMON = 'envoy.extensions.geoip_providers.common.v3.CommonGeoipProviderConfig';
const PROVIDER = 'envoy.geoip_providers.maxmind';
const FIELDS = obeyed(
  'country',
  'city',
  'region',
  'asn',
  'asn_org',
  'anon',
  'anon_vpn',
  'anon_hosting',
  'anon_tor',
  'anon_proxy',
  'isp',
  'apple_private_relay',
);

export const geoip: HttpFilterExtension<Geoip> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.geoip',
  typeUrls: [`type.googleapis.com/${FILTER}`],
  implemented: {
    [FILTER]: {
      provider: onlyExtension([PROVIDER], `use ${PROVIDER}`),
      ...obeyed('xff_config', 'custom_header_config'),
    },
    [`${FILTER}.XffConfig`]: obeyed('xff_num_trusted_hops'),
    [`${FILTER}.CustomHeaderConfig`]: obeyed('header_name'),
  },
  validate(message, report) {
    const config = message as Geoip;
    const { header_name: header } = config.custom_header_config ?? {};
    if (header !== undefined) reportMistakes(report, 'custom_header_config.header_name', () => headerKey(header));
    if (header !== undefined && config.xff_config !== undefined)
      report('custom_header_config', 'only one of xff_config or custom_header_config can be set');
    const provider = maxmindOf(config);
    const at = 'provider.typed_config';
    if (KINDS.every((kind) => pathOf(provider, kind) === '')) {
      const text = 'At least one geolocation database path needs to be configured';
      return report(at, `${text}: city_db_path, isp_db_path, asn_db_path, anon_db_path or country_db_path`);
    }
    for (const field of fieldsWithoutDatabase(provider))
      report(`${at}.common_provider_config`, `no database of the provider has the field '${field}'`);
    reportMistakes(report, `${at}.common_provider_config`, () => databases(provider));
  },
  scopes: (config, chain) => [
    { prefix: `${chain.statPrefix}geoip.`, layout: GeoipStats },
    ...filesOf(maxmindOf(config)).flatMap(({ kind, path }) => [
      { prefix: prefixOf(chain, kind), layout: DatabaseStats },
      { prefix: filePrefix(kind, path), layout: FileStats },
    ]),
  ],
  createOnPrimary(config, context) {
    return openDatabases(
      context,
      filesOf(maxmindOf(config)).map(({ path }) => path),
    );
  },
  createOnWorker(config, context, chain) {
    const provider = maxmindOf(config);
    const files = WorkerDatabases.of(context);
    const lookUps = databases(provider).map(
      (fields) =>
        new DatabaseLookUp(fields, files.at(fields.path), context.scope(prefixOf(chain, fields.kind), DatabaseStats)),
    );
    const rules = {
      lookUps,
      stats: context.scope(`${chain.statPrefix}geoip.`, GeoipStats),
      header: config.custom_header_config && headerKey(config.custom_header_config.header_name!),
      trustedHops: config.xff_config?.xff_num_trusted_hops ?? 0,
    };
    const stops = files.isLeader ? showFiles(provider, files, context) : [];
    return {
      create: (stream) => new GeoipFilter(stream, rules),
      close: () => {
        for (const stop of stops) stop();
      },
    };
  },
};

/** The provider, whose message the filter reads. */
export const maxmindProvider: NamedExtension = {
  category: 'envoy.geoip_providers',
  name: PROVIDER,
  typeUrls: [`type.googleapis.com/${MAXMIND}`],
  implemented: {
    [MAXMIND]: obeyed(
      'city_db_path',
      'asn_db_path',
      'anon_db_path',
      'isp_db_path',
      'country_db_path',
      'common_provider_config',
    ),
    [COMMON]: obeyed('geo_headers_to_add', 'geo_field_keys'),
    [`${COMMON}.GeolocationHeadersToAdd`]: { ...FIELDS, is_anon: true },
    [`${COMMON}.GeolocationFieldKeys`]: FIELDS,
  },
};

/** Shows the reloads of the files, and when they were built: one worker does for all. Returns functions that stop that. */
function showFiles(provider: MaxMindConfig, files: WorkerDatabases, { scope }: WorkerContext): (() => void)[] {
  return filesOf(provider).map(({ kind, path }) => {
    const prefix = filePrefix(kind, path);
    return files.show(path, prefix, () => scope(prefix, FileStats));
  });
}

function filesOf(provider: MaxMindConfig): { readonly kind: Kind; readonly path: string }[] {
  return KINDS.map((kind) => ({ kind, path: pathOf(provider, kind) })).filter(({ path }) => path !== '');
}

function filePrefix(kind: Kind, path: string): string {
  return `maxmind.${kind}_db.${path}.`;
}

function maxmindOf({ provider }: Geoip): MaxMindConfig {
  return unpack(provider?.typed_config, MAXMIND) ?? {};
}

function prefixOf({ statPrefix }: HttpChain, kind: Kind): string {
  return `${statPrefix}maxmind.${kind}_db.`;
}
