// The resource of a logger's records, and requests that contain records (opentelemetry.proto.collector.logs.v1).

import type { AnyValue, CommonKeyValue, OpenTelemetryAccessLogConfig } from '../../../config/generated/api.js';
import { writeAny, writeAttribute } from '../../messages/otlp.js';
import { byteText, ProtobufWriter, type TagValue } from '../../sdk.js';
import { addDetected } from '../../tracers/open-telemetry/resource.js';

interface Identity {
  readonly zone: string;
  readonly cluster: string;
  readonly node: string;
}

/** Returns an encoded Resource. */
export function encodeResource(config: OpenTelemetryAccessLogConfig, { cluster, node, zone }: Identity): Uint8Array {
  const resource = new ProtobufWriter();
  const detected = new Map<string, string>();
  if (config.disable_builtin_labels !== true) {
    const logName = config.log_name || config.common_config?.log_name || '';
    const labels = { log_name: logName, zone_name: zone, cluster_name: cluster, node_name: node };
    for (const [name, value] of Object.entries(labels)) writeAttribute(resource, 1, name, byteText(value));
  }
  addDetected(config.resource_detectors, detected);
  for (const [name, value] of detected) writeAttribute(resource, 1, byteText(name), byteText(value));
  for (const { key = '', value = {} } of config.resource_attributes?.values ?? []) writePair(resource, 1, key, value);
  return resource.copy();
}

/** Returns a function that encodes an ExportLogsServiceRequest. */
export function requestEncoder(resource: Uint8Array): (records: readonly Uint8Array[]) => Uint8Array {
  return (records) => {
    const scopeLogs = new ProtobufWriter();
    for (const record of records) scopeLogs.bytes(2, record);
    const resourceLogs = new ProtobufWriter();
    resourceLogs.bytes(1, resource);
    resourceLogs.bytes(2, scopeLogs.copy());
    const request = new ProtobufWriter();
    request.bytes(1, resourceLogs.copy());
    return request.copy();
  };
}

/** As in Envoy, texts of the resource are not formats. */
function writePair(to: ProtobufWriter, field: number, key: string, value: AnyValue): void {
  const plain = plainValue(value);
  if (plain !== undefined) return writeAttribute(to, field, byteText(key), plain);
  const pair = new ProtobufWriter();
  pair.string(1, key);
  pair.message(2, nestedValue(value));
  to.message(field, pair);
}

function plainValue(value: AnyValue): TagValue | undefined {
  if (value.string_value !== undefined) return byteText(value.string_value);
  if (value.bool_value !== undefined) return value.bool_value;
  if (value.int_value !== undefined) return BigInt(value.int_value);
  return value.double_value === undefined ? undefined : Number(value.double_value);
}

function nestedValue(value: AnyValue): ProtobufWriter {
  const message = new ProtobufWriter();
  const inner = new ProtobufWriter();
  if (value.kvlist_value !== undefined) {
    for (const { key = '', value: each = {} } of (value.kvlist_value.values ?? []) as readonly CommonKeyValue[])
      writePair(inner, 1, key, each);
    message.message(6, inner);
  } else if (value.array_value !== undefined) {
    for (const each of value.array_value.values ?? []) {
      const element = new ProtobufWriter();
      const plain = plainValue(each);
      if (plain === undefined) inner.message(1, nestedValue(each));
      else {
        writeAny(element, plain);
        inner.message(1, element);
      }
    }
    message.message(5, inner);
  } else if (value.bytes_value !== undefined) message.bytes(7, Buffer.from(value.bytes_value, 'base64'));
  return message;
}
