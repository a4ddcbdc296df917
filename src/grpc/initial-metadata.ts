// The metadata of a gRPC service (GrpcService.initial_metadata), whose values may contain %OPERATORS%.

import { BatonError, messageOf } from '../common/errors/errors.js';
import type { Report } from '../config/catalog/extension.js';
import { checkGrpcService as checkService } from '../config/checks/services/grpc-service.js';
import type { GrpcService, HeaderValue } from '../config/generated/api.js';
import { compileHeaderMutations, type HeaderMutations } from '../http/headers/header-mutations.js';
import { compileCallRetries } from '../upstream/http-calls/call-retry-policy.js';

/** Compiles the metadata; undefined if there is none. Throws a BatonError for an invalid value; `path`: that of the list. */
export function compileMetadata(
  metadata: readonly HeaderValue[] | undefined,
  path: string,
): HeaderMutations | undefined {
  const toAdd = metadata?.map((header) => ({ header }));
  const where = (_: string, index: number) => `${path}[${index}]`;
  return compileHeaderMutations([{ toRemove: undefined, toAdd, where }]);
}

/** Reports unsupported settings of a service of an extension; `path`: its path in the configuration of the extension. */
export function checkGrpcService(service: GrpcService | undefined, path: string, report: Report): void {
  checkService(service, path, report);
  try {
    compileCallRetries(service?.retry_policy, 'retry_policy');
  } catch (error) {
    const place = error instanceof BatonError ? (error.where ?? '') : '';
    report(`${path}.${place}`, messageOf(error));
  }
  service?.initial_metadata?.forEach((header, index) => {
    try {
      compileMetadata([header], '');
    } catch (error) {
      report(`${path}.initial_metadata[${index}]`, messageOf(error));
    }
  });
}
