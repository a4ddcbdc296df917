// Checks an HttpService beyond the schema.

import { messageOf } from '../../common/errors/errors.js';
import { CONNECTION_FIELDS } from '../../common/text/connection-fields.js';
import type { Report } from '../../config/catalog/extension.js';
import type { HeaderValueOption, HttpService } from '../../config/generated/api.js';
import { compileHeaderMutations } from '../../http/headers/header-mutations.js';
import { httpTarget } from './http-uri.js';

/** Fields that the call itself sets. */
const OWN = new Set([...CONNECTION_FIELDS, 'host', 'content-type']);

/** Reports unsupported settings; `path` is that of the service in its extension's configuration. */
export function checkHttpService(service: HttpService | undefined, path: string, report: Report): void {
  if (service === undefined) return;
  const { http_uri: uri, request_headers_to_add: headers = [] } = service;
  if (uri === undefined) return report(path, 'http_uri must be set');
  const target = httpTarget(uri.uri ?? '');
  if (typeof target === 'string') report(`${path}.http_uri.uri`, target);
  if (uri.timeout !== undefined && Number.parseFloat(uri.timeout) === 0) {
    report(`${path}.http_uri.timeout`, 'must be above 0: a call without an answer would never end');
  }
  headers.forEach((option, index) => {
    checkHeader(option, `${path}.request_headers_to_add[${index}]`, report);
  });
}

function checkHeader(option: HeaderValueOption, path: string, report: Report): void {
  const name = option.header?.key?.toLowerCase() ?? '';
  if (name.startsWith(':') || OWN.has(name)) return report(`${path}.header.key`, `'${name}' is set by the call itself`);
  try {
    compileHeaderMutations([{ toRemove: undefined, toAdd: [option], where: () => path, isLiteral: true }]);
  } catch (error) {
    report(path, messageOf(error));
  }
}
