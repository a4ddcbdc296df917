// The databases of the MaxMind provider: which fields each has, and where.

import type { CommonGeoipProviderConfig, MaxMindConfig } from '../../../../config/generated/api.js';
import { type HeaderKey, settableKey } from '../../../sdk.js';
import type { MmdbPath } from './mmdb.js';

export const KINDS = ['country', 'city', 'asn', 'anon', 'isp'] as const;
export type Kind = (typeof KINDS)[number];

type Field = keyof NonNullable<CommonGeoipProviderConfig['geo_field_keys']>;

/** A field in a record. */
interface FieldPlace {
  readonly field: Field;
  readonly path: MmdbPath;
}

const COUNTRY: FieldPlace = { field: 'country', path: ['country', 'iso_code'] };

const FIELDS: { readonly [kind in Kind]: readonly FieldPlace[] } = {
  country: [COUNTRY],
  city: [
    { field: 'city', path: ['city', 'names', 'en'] },
    { field: 'region', path: ['subdivisions', '0', 'iso_code'] },
    COUNTRY,
  ],
  asn: [
    { field: 'asn', path: ['autonomous_system_number'] },
    { field: 'asn_org', path: ['autonomous_system_organization'] },
  ],
  anon: [
    { field: 'anon', path: ['is_anonymous'] },
    { field: 'anon_vpn', path: ['is_anonymous_vpn'] },
    { field: 'anon_hosting', path: ['is_hosting_provider'] },
    { field: 'anon_tor', path: ['is_tor_exit_node'] },
    { field: 'anon_proxy', path: ['is_public_proxy'] },
  ],
  isp: [
    { field: 'isp', path: ['isp'] },
    { field: 'apple_private_relay', path: ['isp'] },
    { field: 'asn', path: ['autonomous_system_number'] },
    { field: 'asn_org', path: ['organization'] },
  ],
};

/** What is looked up in one database. */
export interface DatabaseFields {
  readonly kind: Kind;
  /** Of the file. */
  readonly path: string;
  readonly paths: readonly MmdbPath[];
  /** The header fields that get the values at `paths`. */
  readonly headers: readonly HeaderKey[];
  /** The index of the value that becomes `true` for ISPs that relay; -1: there is none. */
  readonly relayAt: number;
}

/** Returns the file of a database; '' if there is none. */
export function pathOf(config: MaxMindConfig, kind: Kind): string {
  return config[`${kind}_db_path`] ?? '';
}

/** Returns the header field of each configured field. */
export function fieldNames({ common_provider_config: common }: MaxMindConfig): ReadonlyMap<Field, string> {
  const { geo_field_keys: keys, geo_headers_to_add: headers } = common ?? {};
  const { anon, anon_hosting, anon_proxy, anon_tor, anon_vpn, apple_private_relay } = keys ?? headers ?? {};
  const { asn, asn_org, city, country, isp, region } = keys ?? headers ?? {};
  const names = {
    ...{ anon_hosting, anon_proxy, anon_tor, anon_vpn, apple_private_relay, asn, asn_org, city, country, isp, region },
    anon: anon || (keys === undefined ? headers?.is_anon : ''),
  };
  return new Map(Object.entries(names).flatMap(([field, name]) => (name ? [[field as Field, name]] : [])));
}

/** Returns the configured fields that none of the configured databases has. */
export function fieldsWithoutDatabase(config: MaxMindConfig): Field[] {
  const found = new Set(KINDS.flatMap((kind) => (pathOf(config, kind) === '' ? [] : placesIn(config, kind))));
  const fields = new Set([...found].map(({ field }) => field));
  return [...fieldNames(config).keys()].filter((field) => !fields.has(field));
}

/** Returns the databases in which something is looked up, in Envoy's order. Throws a BatonError for a name that no header field has. */
export function databases(config: MaxMindConfig): DatabaseFields[] {
  const names = fieldNames(config);
  return KINDS.flatMap((kind) => {
    const path = pathOf(config, kind);
    const places = path === '' ? [] : placesIn(config, kind).filter(({ field }) => names.has(field));
    if (places.length === 0) return [];
    return {
      kind,
      path,
      paths: places.map((place) => place.path),
      headers: places.map(({ field }) => settableKey(names.get(field)!)),
      relayAt: places.findIndex(({ field }) => field === 'apple_private_relay'),
    };
  });
}

/** Databases of countries and of autonomous systems are preferred to those of cities and ISPs. */
function placesIn(config: MaxMindConfig, kind: Kind): readonly FieldPlace[] {
  if (kind === 'city' && pathOf(config, 'country') !== '') return FIELDS.city.filter((place) => place !== COUNTRY);
  if (kind === 'isp' && pathOf(config, 'asn') !== '') return FIELDS.isp.slice(0, 2);
  return FIELDS[kind];
}
