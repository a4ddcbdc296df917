// Records of one logger (opentelemetry.proto.logs.v1.LogRecord).

import type { OpenTelemetryAccessLogConfig } from '../../../config/generated/api.js';
import { writeAttribute, writeNanos } from '../../messages/otlp.js';
import {
  addNeeds,
  byteText,
  type CompiledTag,
  compileCustomTags,
  compileFormat,
  type Format,
  type HeaderNeeds,
  ProtobufWriter,
  type StreamInfo,
  withinPlace,
} from '../../sdk.js';
import { type Attribute, compileAttributes, compileValue, type ValueWriter, writeAttributes } from './values.js';

const TRACE_DIGITS = 32;
const SPAN_DIGITS = 16;

const record = new ProtobufWriter();
const body = new ProtobufWriter();

export class Records {
  readonly #body: ValueWriter | undefined;
  readonly #attributes: readonly Attribute[];
  readonly #filterState: readonly { readonly key: string; readonly format: Format }[];
  readonly #tags: readonly CompiledTag[];

  /** Adds what records read to `needs`. Throws a BatonError, or Mistakes, for invalid formats. */
  constructor(config: OpenTelemetryAccessLogConfig, needs: HeaderNeeds) {
    const { attributes, body: text, common_config: common } = config;
    const objects = config.filter_state_objects_to_log ?? common?.filter_state_objects_to_log ?? [];
    this.#body = text && compileValue(text, needs, 'body');
    this.#attributes = attributes === undefined ? [] : compileAttributes(attributes, needs, 'attributes');
    this.#filterState = objects.map((key, index) => {
      const place = `filter_state_objects_to_log[${index}]`;
      const format = withinPlace(place, () => compileFormat(`%FILTER_STATE(${key})%`, { omitEmptyValues: true }));
      addNeeds(format, needs);
      return { key: byteText(key), format };
    });
    this.#tags = compileCustomTags(config.custom_tags ?? common?.custom_tags, needs, 'custom_tags');
  }

  encode(info: StreamInfo): Uint8Array {
    record.clear();
    writeNanos(record, 1, info.startRealtimeMs);
    if (this.#body !== undefined) {
      body.clear();
      this.#body(body, info);
      record.message(5, body);
    }
    writeAttributes(record, 6, this.#attributes, info);
    this.#writeDetails(info);
    const { spanId = '', traceId = '' } = info.span ?? {};
    if (traceId !== '') record.bytes(9, Buffer.from(traceId.padStart(TRACE_DIGITS, '0'), 'hex'));
    if (spanId.length === SPAN_DIGITS) record.bytes(10, Buffer.from(spanId, 'hex'));
    return record.copy();
  }

  #writeDetails(info: StreamInfo): void {
    for (const { format, key } of this.#filterState) {
      const text = format.text(info);
      if (text !== '') writeAttribute(record, 6, key, text);
    }
    for (const tag of this.#tags) {
      const text = tag.value(info);
      if (text !== '') writeAttribute(record, 6, tag.name, text);
    }
  }
}
