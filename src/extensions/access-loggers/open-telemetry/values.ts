// Values of log records whose texts are formats (opentelemetry.proto.common.v1.AnyValue), compiled.

import type { AnyValue, CommonKeyValue, KeyValueList } from '../../../config/generated/api.js';
import { writeText } from '../../messages/wire.js';
import {
  addNeeds,
  BatonError,
  byteText,
  compileFormat,
  type HeaderNeeds,
  ProtobufWriter,
  type StreamInfo,
  withinPlace,
} from '../../sdk.js';

/** Writes the fields of an AnyValue. */
export type ValueWriter = (to: ProtobufWriter, info: StreamInfo) => void;

export interface Attribute {
  readonly key: string;
  readonly write: ValueWriter;
  /** Memory for its messages, reused by each record. */
  readonly pair: ProtobufWriter;
  readonly value: ProtobufWriter;
}

/** Compiles a value and adds what its formats read to `needs`. Throws a BatonError with its place for an invalid one. */
export function compileValue(value: AnyValue, needs: HeaderNeeds, where: string): ValueWriter {
  if (value.kvlist_value !== undefined)
    return listWriter(compileAttributes(value.kvlist_value, needs, `${where}.kvlist_value`));
  if (value.array_value !== undefined) {
    const place = `${where}.array_value.values`;
    return arrayWriter(
      (value.array_value.values ?? []).map((each, index) => compileValue(each, needs, `${place}[${index}]`)),
    );
  }
  const { string_value: text } = value;
  if (text === undefined)
    throw new BatonError('CONFIG_INVALID', 'only texts, lists and arrays are supported', { where });
  const format = withinPlace(`${where}.string_value`, () => compileFormat(text));
  addNeeds(format, needs);
  return (to, info) => writeString(to, format.text(info));
}

export function compileAttributes(list: KeyValueList, needs: HeaderNeeds, where: string): Attribute[] {
  return (list.values ?? []).map(({ key = '', value = {} }: CommonKeyValue, index) => ({
    key: byteText(key),
    write: compileValue(value, needs, `${where}.values[${index}].value`),
    pair: new ProtobufWriter(),
    value: new ProtobufWriter(),
  }));
}

/** Writes KeyValues. */
export function writeAttributes(
  to: ProtobufWriter,
  field: number,
  attributes: readonly Attribute[],
  info: StreamInfo,
): void {
  for (const { key, pair, value, write } of attributes) {
    pair.clear();
    value.clear();
    write(value, info);
    writeText(pair, 1, key);
    pair.message(2, value);
    to.message(field, pair);
  }
}

function listWriter(attributes: readonly Attribute[]): ValueWriter {
  const list = new ProtobufWriter();
  return (to, info) => {
    list.clear();
    writeAttributes(list, 1, attributes, info);
    to.message(6, list);
  };
}

function arrayWriter(values: readonly ValueWriter[]): ValueWriter {
  const array = new ProtobufWriter();
  const value = new ProtobufWriter();
  return (to, info) => {
    array.clear();
    for (const write of values) {
      value.clear();
      write(value, info);
      array.message(1, value);
    }
    to.message(5, array);
  };
}

/** Field of a oneof: also an empty text is written. */
function writeString(to: ProtobufWriter, text: string): void {
  if (text === '') to.string(1, '');
  else writeText(to, 1, text);
}
