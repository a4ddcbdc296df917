// The compared filter: it copies the request header user-agent to x-seen. In TypeScript for Baton, in Lua for Envoy and HAProxy, and
// built into all.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '../../../../test/e2e/harness/bootstrap.js';
import { ISSUER, JWKS } from '../token.js';
import type { PolicyPort } from '../workloads.js';

/** A filter, and what the bootstrap needs for it. */
export interface ComparedFilter {
  filter: Config;
  bootstrap: Config;
}

const TYPES = 'type.googleapis.com';

const MODULE = `import { defineHttpFilter } from 'baton';
export default defineHttpFilter({
  onRequest(request) { request.headers.set('x-seen', request.headers.get('user-agent') ?? ''); },
});
`;

const LUA = `function envoy_on_request(handle)
  handle:headers():replace("x-seen", handle:headers():get("user-agent"))
end`;

export const HEADER_MUTATION: Config = {
  name: 'mutation',
  typed_config: {
    '@type': `${TYPES}/envoy.extensions.filters.http.header_mutation.v3.HeaderMutation`,
    mutations: {
      request_mutations: [
        {
          append: {
            header: { key: 'x-seen', value: '%REQ(user-agent)%' },
            append_action: 'OVERWRITE_IF_EXISTS_OR_ADD',
          },
        },
      ],
    },
  },
};

const ALWAYS = { default_value: { numerator: 100, denominator: 'HUNDRED' } };

/** The filters that only Baton and Envoy have. */
export const POLICIES: Readonly<Record<Exclude<PolicyPort, 'subset'>, Config>> = {
  lua: {
    name: 'lua',
    typed_config: {
      '@type': `${TYPES}/envoy.extensions.filters.http.lua.v3.Lua`,
      default_source_code: { inline_string: LUA },
    },
  },
  rbac: {
    name: 'rbac',
    typed_config: {
      '@type': `${TYPES}/envoy.extensions.filters.http.rbac.v3.RBAC`,
      rules: {
        action: 'ALLOW',
        policies: {
          clients: {
            permissions: [{ url_path: { path: { exact: '/small' } } }],
            principals: [{ header: { name: 'user-agent', string_match: { prefix: 'curl/' } } }],
          },
        },
      },
    },
  },
  jwt: {
    name: 'jwt',
    typed_config: {
      '@type': `${TYPES}/envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication`,
      providers: { bench: { issuer: ISSUER, local_jwks: { inline_string: JWKS } } },
      rules: [{ match: { prefix: '/' }, requires: { provider_name: 'bench' } }],
    },
  },
  extAuthz: {
    name: 'ext_authz',
    typed_config: {
      '@type': `${TYPES}/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz`,
      transport_api_version: 'V3',
      grpc_service: { envoy_grpc: { cluster_name: 'grpc_origin' }, timeout: '3600s' },
    },
  },
  rateLimit: {
    name: 'ratelimit',
    typed_config: {
      '@type': `${TYPES}/envoy.extensions.filters.http.ratelimit.v3.RateLimit`,
      domain: 'bench',
      timeout: '3600s',
      failure_mode_deny: true,
      rate_limit_service: {
        transport_api_version: 'V3',
        grpc_service: { envoy_grpc: { cluster_name: 'grpc_origin' } },
      },
    },
  },
  localRateLimit: {
    name: 'local_ratelimit',
    typed_config: {
      '@type': `${TYPES}/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit`,
      stat_prefix: 'bench',
      token_bucket: { max_tokens: 1_000_000_000, fill_interval: '1s' },
      filter_enabled: ALWAYS,
      filter_enforced: ALWAYS,
    },
  },
  gzip: {
    name: 'compressor',
    typed_config: {
      '@type': `${TYPES}/envoy.extensions.filters.http.compressor.v3.Compressor`,
      compressor_library: {
        name: 'gzip',
        typed_config: { '@type': `${TYPES}/envoy.extensions.compression.gzip.compressor.v3.Gzip` },
      },
    },
  },
};

/** Writes the module. */
export function typeScriptFilter(directory: string): ComparedFilter {
  const filename = join(directory, 'seen.ts');
  writeFileSync(filename, MODULE);
  return {
    filter: {
      name: 'seen',
      typed_config: { '@type': `${TYPES}/baton.filters.http.script.v1.Script`, module: 'seen' },
    },
    bootstrap: {
      bootstrap_extensions: [
        {
          name: 'scripts',
          typed_config: { '@type': `${TYPES}/baton.scripts.v1.Scripts`, modules: { seen: { filename } } },
        },
      ],
    },
  };
}

export function luaFilter(): ComparedFilter {
  return { filter: POLICIES.lua, bootstrap: {} };
}

/** Writes the script of HAProxy. Returns its path. */
export function haproxyScript(directory: string): string {
  const path = join(directory, 'seen.lua');
  writeFileSync(
    path,
    `core.register_action("seen", { "http-req" }, function(txn)
  txn.http:req_set_header("x-seen", txn.http:req_get_headers()["user-agent"][0])
end)
`,
  );
  return path;
}
