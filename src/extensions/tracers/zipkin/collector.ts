// The service that receives Zipkin's reports.

import type { HttpService, ZipkinConfig } from '../../../config/generated/api.js';

/** Returns the service that the older fields of the configuration describe, or its collector_service. */
export function collectorService(config: ZipkinConfig, timeoutMs: number): HttpService {
  if (config.collector_service !== undefined) return config.collector_service;
  const { collector_cluster: cluster = '', collector_endpoint: path = '', collector_hostname: host } = config;
  return { http_uri: { uri: `http://${host || cluster}${path}`, cluster, timeout: `${timeoutMs / 1000}s` } };
}
