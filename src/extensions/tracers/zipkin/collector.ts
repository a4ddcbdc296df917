// The service that receives Zipkin's reports: a collector_service, or that of the older fields of the configuration.

import type { ZipkinConfig } from '../../../config/generated/api.js';
import {
  byteText,
  type CallingThread,
  HttpCall,
  type HttpCallEvents,
  type HttpCallRequest,
  HttpService,
  headerKey,
  Method,
} from '../../sdk.js';

const HOST = headerKey('host');
const CONTENT_TYPE = headerKey('content-type');

export interface Collector {
  readonly cluster: string;
  /** Sends a report. Throws if the call cannot begin, as HttpCall.start() does. */
  post(contentType: string, body: Uint8Array, events: HttpCallEvents): void;
}

/** `timeoutMs`: for the older fields; a collector_service has its own. */
export function createCollector(
  config: ZipkinConfig,
  timeoutMs: { readonly value: number },
  calls: CallingThread,
): Collector {
  const { collector_service: own } = config;
  if (own === undefined) return olderCollector(config, timeoutMs, calls);
  const service = new HttpService(own, calls);
  return {
    cluster: own.http_uri!.cluster!,
    post: (contentType, body, events) => service.post(contentType, [body], events),
  };
}

/** As in Envoy, the name of the cluster is that of the host unless there is another one. It need not be a valid name. */
function olderCollector(
  { collector_cluster: cluster = '', collector_endpoint: path = '', collector_hostname: hostname }: ZipkinConfig,
  timeoutMs: { readonly value: number },
  calls: CallingThread,
): Collector {
  const reference = calls.reference(cluster);
  const host = byteText(hostname || cluster);
  return {
    cluster,
    post(contentType, body, events) {
      const request: HttpCallRequest = {
        writeHead(head) {
          head.setMethod(Method.Post, 'POST');
          head.setPath(path);
          head.add(HOST, host);
          head.add(CONTENT_TYPE, contentType);
        },
        body: [body],
        timeoutMs: Math.max(1, timeoutMs.value),
      };
      HttpCall.start(calls, reference.current, request, events);
    },
  };
}
