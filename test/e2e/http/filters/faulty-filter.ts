// Loaded into Baton before its own code (--import): an HTTP filter with a mistake in the function that its configuration names.
// It is configured by messages of filters for AWS.

import type { AwsRequestSigningPerRoute } from '../../../../src/config/generated/api.js';
import type { AnyExtension, HttpFilterExtension } from '../../../../src/extensions/factories.js';
import { EXTENSIONS } from '../../../../src/extensions/index.js';
import { partialTable } from '../../../config/partial-table.js';

export const FILTER_TYPE = 'envoy.extensions.filters.http.aws_request_signing.v3.AwsRequestSigningPerRoute';
export const ROUTE_TYPE = 'envoy.extensions.filters.http.aws_lambda.v3.Config';

const faulty: HttpFilterExtension<AwsRequestSigningPerRoute> = {
  category: 'envoy.filters.http',
  name: 'acme.faulty',
  typeUrls: [`type.googleapis.com/${FILTER_TYPE}`, `type.googleapis.com/${ROUTE_TYPE}`],
  implemented: partialTable({ [FILTER_TYPE]: { stat_prefix: true }, [ROUTE_TYPE]: { arn: true } }),
  clusters(config) {
    if (failsIn(config) === 'clusters') throw new TypeError('a mistake');
    return [];
  },
  scopes(config) {
    if (failsIn(config) === 'scopes') throw new TypeError('a mistake');
    return [];
  },
  createOnWorker(config) {
    if (failsIn(config) === 'createOnWorker by an exception') throw new TypeError('a mistake');
    return failsIn(config) === 'createOnWorker' ? (Promise.resolve() as never) : { create: () => undefined };
  },
  createOnPrimary(config) {
    if (failsIn(config) === 'createOnPrimary') throw new TypeError('a mistake');
    return {
      close() {
        if (failsIn(config) === 'close') throw new TypeError('a mistake');
      },
    };
  },
  compileRouteConfig() {
    throw new TypeError('a mistake');
  },
};

function failsIn(config: unknown): string | undefined {
  return (config as AwsRequestSigningPerRoute).stat_prefix;
}

(EXTENSIONS as AnyExtension[]).push(faulty as AnyExtension);
