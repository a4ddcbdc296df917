// geoip: header fields by the place of the client, with the fields and stats of Envoy 1.40.

import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { writeMmdb } from '../../../extensions/filters/http/geoip/write-mmdb.js';
import { besideEnvoy, type ProxyProgram } from '../../harness/envoy.js';
import {
  bootstrap,
  type Config,
  type EchoedRequest,
  httpListener,
  ROUTER_FILTER,
  routeAllTo,
  startBaton,
  startEchoUpstream,
  staticCluster,
  type Teardown,
  tempDir,
} from '../../harness/index.js';
import { startProxy } from '../proxy.js';

const host = await startEchoUpstream(t);
const TYPE = 'type.googleapis.com/envoy.extensions';

function filter(provider: Config, more: Config = {}): Config {
  return {
    name: 'geoip',
    typed_config: {
      '@type': `${TYPE}.filters.http.geoip.v3.Geoip`,
      provider: {
        name: 'envoy.geoip_providers.maxmind',
        typed_config: { '@type': `${TYPE}.geoip_providers.maxmind.v3.MaxMindConfig`, ...provider },
      },
      ...more,
    },
  };
}

async function start(t: Teardown, program: ProxyProgram, provider: Config, more?: Config) {
  const { baton, get } = await startProxy(t, {
    ...program,
    args: ['-l', 'error', '--concurrency', '1'],
    listeners: { own: { http_filters: [filter(provider, more), ROUTER_FILTER], route_config: routeAllTo('host') } },
    clusters: [staticCluster('host', host.port)],
  });
  return {
    baton,
    /** Returns the header fields that the host gets. */
    async sent(headers: Record<string, string>) {
      const { body } = await get('/', { headers });
      return (JSON.parse(body) as EchoedRequest).headers;
    },
  };
}

const fields = (geo_field_keys: Config) => ({ common_provider_config: { geo_field_keys } });
const BY_HEADER = { custom_header_config: { header_name: 'x-ip' } };
const STAT = 'http.own.maxmind';

function write(t: Teardown, name: string, networks: Parameters<typeof writeMmdb>[0], epoch?: number): string {
  const path = join(tempDir(t), `${name}.mmdb`);
  writeFileSync(path, writeMmdb(networks, epoch));
  return path;
}

const CITY = {
  city: { names: { en: 'Boxford' } },
  subdivisions: [{ iso_code: 'ENG' }],
  country: { iso_code: 'GB' },
};

besideEnvoy('fields of a city, of the client or of an address in a field', async (t, program) => {
  const city_db_path = write(t, 'city', { '127.0.0.0/8': CITY, '2001:db8::/32': { country: { iso_code: 'DE' } } });
  const keys = fields({ city: 'x-city', region: 'x-region', country: 'x-country' });
  const { baton, sent } = await start(t, program, { city_db_path, ...keys }, BY_HEADER);
  t.match(await sent({}), { 'x-city': 'Boxford', 'x-region': 'ENG', 'x-country': 'GB' });
  t.match(await sent({ 'x-ip': 'no address' }), { 'x-country': 'GB' }, 'that of the client');
  const six = await sent({ 'x-ip': '2001:db8::7', 'x-city': 'of the client' });
  t.match(six, { 'x-country': 'DE', 'x-city': 'of the client', 'x-region': undefined });
  t.match(await sent({ 'x-ip': '192.0.2.1' }), { 'x-country': undefined });
  await baton.waitForStats({
    [`${STAT}.city_db.total`]: 4,
    [`${STAT}.city_db.hit`]: 3,
    [`${STAT}.city_db.lookup_error`]: 1,
    [`maxmind.city_db.${city_db_path}.db_build_epoch`]: 1_700_000_000,
    'http.own.geoip.total': 4,
  });
});

besideEnvoy('other databases take precedence over the fields of cities and ISPs', async (t, program) => {
  const networks = (record: Parameters<typeof writeMmdb>[0][string]) => ({ '127.0.0.0/8': record });
  const provider = {
    city_db_path: write(t, 'city', networks(CITY)),
    country_db_path: write(t, 'country', networks({ country: { iso_code: 'FR' } })),
    isp_db_path: write(
      t,
      'isp',
      networks({ isp: 'iCloud Private Relay', autonomous_system_number: 1, organization: 'of the ISP' }),
    ),
    asn_db_path: write(
      t,
      'asn',
      networks({ autonomous_system_number: 64_500, autonomous_system_organization: 'Example' }),
    ),
    anon_db_path: write(t, 'anon', networks({ is_anonymous: true, is_tor_exit_node: false })),
  };
  const keys = {
    ...{ city: 'x-city', country: 'x-country', asn: 'x-asn', asn_org: 'x-org', isp: 'x-isp' },
    ...{ apple_private_relay: 'x-relay', anon: 'x-anon', anon_tor: 'x-tor', anon_vpn: 'x-vpn' },
  };
  const { baton, sent } = await start(t, program, { ...provider, ...fields(keys) });
  t.match(await sent({}), {
    'x-city': 'Boxford',
    'x-country': 'FR',
    'x-asn': '64500',
    'x-org': 'Example',
    'x-isp': 'iCloud Private Relay',
    'x-relay': 'true',
    'x-anon': 'true',
    'x-tor': 'false',
    'x-vpn': undefined,
  });
  for (const kind of ['city', 'country', 'isp', 'asn', 'anon'])
    await baton.waitForStats({ [`${STAT}.${kind}_db.total`]: 1, [`${STAT}.${kind}_db.hit`]: 1 });
  const { asn_db_path: _, ...others } = provider;
  const second = await start(t, program, { ...others, ...fields(keys) });
  t.match(await second.sent({}), { 'x-asn': '1', 'x-org': 'of the ISP' }, 'without a database of systems');
});

besideEnvoy('the address may be one of x-forwarded-for', async (t, program) => {
  const country_db_path = write(t, 'country', {
    '10.0.0.0/8': { country: { iso_code: 'AA' } },
    '11.0.0.0/8': { country: { iso_code: 'BB' } },
  });
  const provider = { country_db_path, ...fields({ country: 'x-country' }) };
  const { sent } = await start(t, program, provider, { xff_config: { xff_num_trusted_hops: 1 } });
  t.match(await sent({ 'x-forwarded-for': '10.0.0.1, 11.0.0.1' }), { 'x-country': 'AA' });
  t.match(await sent({ 'x-forwarded-for': '11.0.0.1,10.0.0.1,12.0.0.1' }), { 'x-country': 'AA' });
  // As without the filter, the client's address is that in the field.
  t.match(await sent({ 'x-forwarded-for': '11.0.0.1' }), { 'x-country': 'BB' });
});

besideEnvoy('the older names of the fields', async (t, program) => {
  const anon_db_path = write(t, 'anon', { '127.0.0.0/8': { is_anonymous: true } });
  const common_provider_config = { geo_headers_to_add: { is_anon: 'x-anon' } };
  const { sent } = await start(t, program, { anon_db_path, common_provider_config });
  t.match(await sent({}), { 'x-anon': 'true' });
});

besideEnvoy('a database that is replaced is read again, and one that is damaged is not used', async (t, program) => {
  const country = (iso_code: string) => ({ '127.0.0.0/8': { country: { iso_code } } });
  const country_db_path = write(t, 'country', country('AA'));
  const provider = { country_db_path, ...fields({ country: 'x-country' }) };
  const { baton, sent } = await start(t, program, provider);
  const file = `maxmind.country_db.${country_db_path}`;
  t.match(await sent({}), { 'x-country': 'AA' });
  const replace = (bytes: Buffer) => {
    writeFileSync(`${country_db_path}.new`, bytes);
    renameSync(`${country_db_path}.new`, country_db_path);
  };
  replace(writeMmdb(country('BB'), 1_800_000_000));
  await baton.waitForStats({
    [`${file}.db_reload_success`]: 1,
    [`${file}.db_build_epoch`]: 1_800_000_000,
  });
  t.match(await sent({}), { 'x-country': 'BB' });
  replace(Buffer.from('damaged'));
  await baton.waitForStats({ [`${file}.db_reload_error`]: 1 });
  t.match(await sent({}), { 'x-country': 'BB' });
});

t.test('values that no header field can have are not set', async (t) => {
  const record = { city: { names: { en: 'a\r\nx-evil: 1' } }, country: { iso_code: 'A\0' } };
  const city_db_path = write(t, 'city', { '127.0.0.0/8': record });
  const keys = fields({ city: 'x-city', country: 'x-country' });
  const { sent } = await start(t, { command: undefined }, { city_db_path, ...keys });
  t.match(await sent({}), { 'x-city': undefined, 'x-country': undefined, 'x-evil': undefined });
});

t.test('providers without a usable database are refused', async (t) => {
  const damaged = join(tempDir(t), 'damaged.mmdb');
  writeFileSync(damaged, 'no database');
  const city_db_path = write(t, 'city', {});
  for (const [provider, more, text] of [
    [fields({ city: 'x' }), {}, /At least one geolocation database path needs to be configured/],
    [{ city_db_path: '/missing.mmdb', ...fields({ city: 'x' }) }, {}, /the database \/missing\.mmdb: ENOENT/],
    [{ city_db_path: damaged, ...fields({ city: 'x' }) }, {}, /it is not a MaxMind DB/],
    [{ city_db_path, ...fields({ isp: 'x' }) }, {}, /no database of the provider has the field 'isp'/],
    [{ city_db_path, ...fields({ city: 'a b' }) }, {}, /is not a valid header name/],
    [
      { city_db_path, ...fields({ city: 'x' }) },
      { ...BY_HEADER, xff_config: {} },
      /only one of xff_config or custom_header_config can be set/,
    ],
  ] as const) {
    const manager = { http_filters: [filter(provider, more), ROUTER_FILTER], route_config: routeAllTo('host') };
    const config = bootstrap({
      listeners: [httpListener('l', 0, manager)],
      clusters: [staticCluster('host', host.port)],
    });
    const baton = await startBaton(t, { args: ['-l', 'error'], wait: 'spawned', config });
    await baton.exited;
    t.match(baton.stderr, text);
  }
});
