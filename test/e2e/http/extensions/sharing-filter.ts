// Loaded into Baton before its own code (--import): an HTTP filter with counters in two scopes that share the prefix of its
// connection manager. It is configured by messages of filters for AWS, whose stat_prefix names a further layout to request.

import type { AwsRequestSigningPerRoute } from '../../../../src/config/generated/api.js';
import { EXTENSIONS } from '../../../../src/extensions/index.js';
import { defineLayout, HeadersStatus, type HttpFilterExtension } from '../../../../src/extensions/sdk.js';
import { partialTable } from '../../../config/partial-table.js';

const TYPE = 'envoy.extensions.filters.http.aws_request_signing.v3.AwsRequestSigningPerRoute';
const Seen = defineLayout({ seen: 'counter', seen_bytes: 'histogram_bytes' });
const Passed = defineLayout({ passed: 'counter' });
const Other = defineLayout({ other: 'counter' });

const sharing: HttpFilterExtension<AwsRequestSigningPerRoute> = {
  category: 'envoy.filters.http',
  name: 'acme.sharing',
  typeUrls: [`type.googleapis.com/${TYPE}`],
  implemented: partialTable({ [TYPE]: { stat_prefix: true } }),
  scopes: (_config, { statPrefix: prefix }) => [
    { prefix, layout: Seen },
    { prefix, layout: Passed },
  ],
  createOnWorker({ stat_prefix: asks }, context, { statPrefix }) {
    const seen = context.scope(statPrefix, Seen);
    const passed = context.scope(statPrefix, Passed);
    if (asks === 'other') context.scope(statPrefix, Other);
    return {
      create: () => ({
        decodeHeaders() {
          seen.increment(Seen.at.seen);
          passed.add(Passed.at.passed, 2);
          return HeadersStatus.Continue;
        },
      }),
    };
  },
};

(EXTENSIONS as HttpFilterExtension[]).push(sharing as HttpFilterExtension);
