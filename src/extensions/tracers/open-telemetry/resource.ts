// The resource of exported spans: the attributes of this server (opentelemetry.proto.resource.v1.Resource).

import type { Any, OpenTelemetryConfig, TypedExtensionConfig } from '../../../config/generated/api.js';
import { writeAttribute } from '../../messages/otlp.js';
import { byteText, ProtobufWriter, releaseNumber, unpack } from '../../sdk.js';

const PACKAGE = 'envoy.extensions.tracers.opentelemetry.resource_detectors.v3';
export const ENVIRONMENT = `${PACKAGE}.EnvironmentResourceDetectorConfig`;
export const STATIC = `${PACKAGE}.StaticConfigResourceDetectorConfig`;

export const LIBRARY = 'baton';
const VARIABLE = 'OTEL_RESOURCE_ATTRIBUTES';
const DEFAULT_SERVICE = 'unknown_service:baton';

/** Returns an encoded Resource. */
export function encodeResource(config: OpenTelemetryConfig): Uint8Array {
  const resource = new ProtobufWriter();
  for (const [name, value] of resourceAttributes(config)) writeAttribute(resource, 1, byteText(name), byteText(value));
  return resource.copy();
}

/** As in Envoy, later detectors replace what earlier ones and the service name have set. */
function resourceAttributes(config: OpenTelemetryConfig): ReadonlyMap<string, string> {
  const attributes = new Map<string, string>();
  if (config.set_telemetry_sdk_resource_attributes ?? true) {
    attributes.set('telemetry.sdk.language', 'nodejs');
    attributes.set('telemetry.sdk.name', LIBRARY);
    attributes.set('telemetry.sdk.version', releaseNumber());
  }
  if (config.set_service_name_resource_attribute ?? true)
    attributes.set('service.name', config.service_name || DEFAULT_SERVICE);
  addDetected(config.resource_detectors, attributes);
  return attributes;
}

/** Adds the attributes that the detectors find. */
export function addDetected(
  detectors: readonly TypedExtensionConfig[] | undefined,
  attributes: Map<string, string>,
): void {
  for (const { typed_config: config } of detectors ?? []) {
    const fixed = unpack(config as Any, STATIC);
    const found = fixed === undefined ? environmentAttributes() : Object.entries(fixed.attributes ?? {});
    for (const [name, value] of found) if (name !== '') attributes.set(name, value);
  }
}

/** Returns the pairs of `a=1,b=2`. */
function environmentAttributes(): [name: string, value: string][] {
  const pairs: [string, string][] = [];
  for (const pair of (process.env[VARIABLE] ?? '').split(',')) {
    const equals = pair.indexOf('=');
    if (equals > 0) pairs.push([pair.slice(0, equals), pair.slice(equals + 1)]);
  }
  return pairs;
}
