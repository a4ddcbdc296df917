// The layout of json_format: one JSON object per line, whose strings contain flags. pino serializes the object.

import { pino } from 'pino';
import { compileFlags, type FlagText, type LogFormat, type LogFormatOptions, type LogRecord } from './log-format.js';

/**
 * Members of each line, as in application_log_config.log_format.json_format; without members, the layout is pino's own record.
 */
export type JsonLogFormat = { readonly [key: string]: unknown };

type Value = (record: LogRecord) => unknown;

/** Compiles a layout that has members. Keys and values may contain flags; other values are written unchanged. */
export function compileJsonLogFormat(format: JsonLogFormat, options: LogFormatOptions): LogFormat {
  const texts: FlagText[] = [];
  const compileText = (text: string): FlagText => {
    // The message is escaped together with the surrounding text.
    const compiled = compileFlags(text, options, { j: (record) => record.message });
    texts.push(compiled);
    return compiled;
  };
  const members = compileObject(format, compileText);
  let record: LogRecord;
  let line = '';
  const writer = pino(
    // The line contains the members only. `level` removes the level that pino writes first.
    {
      base: null,
      timestamp: false,
      formatters: { level: () => ({}) },
      serializers: { err: (value: unknown) => value },
      mixin: () => members(record),
    },
    {
      write(text) {
        line = text;
      },
    },
  );
  return {
    needsSource: texts.some((text) => text.needsSource),
    format(of) {
      record = of;
      writer.info(undefined);
      return `{${line.slice('{,'.length)}`;
    },
  };
}

function compileObject(object: JsonLogFormat, compileText: (text: string) => FlagText): (record: LogRecord) => object {
  const members = Object.entries(object).map(
    ([key, value]) => [compileText(key), compileValue(value, compileText)] as const,
  );
  return (record) => {
    // Without a prototype, no key is special.
    const made: Record<string, unknown> = Object.create(null);
    for (const [key, value] of members) made[key.print(record)] = value(record);
    return made;
  };
}

function compileValue(value: unknown, compileText: (text: string) => FlagText): Value {
  if (typeof value === 'string') {
    const text = compileText(value);
    return (record) => text.print(record);
  }
  if (Array.isArray(value)) {
    const items = value.map((item) => compileValue(item, compileText));
    return (record) => items.map((item) => item(record));
  }
  if (typeof value === 'object' && value !== null) return compileObject(value as JsonLogFormat, compileText);
  return () => value;
}
